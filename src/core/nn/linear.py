"""The affine projection y = x W + b of the last axis, its weight stored in-by-out (chapter 19)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import PartFailed, attributed
from .affine import Projection
from .parameters import NamedParameter, named_parameter, xavier_uniform
from .splitmix64 import SplitMix64


@dataclass(frozen=True, eq=False)
class Linear(Projection):
    """y = x W + b with W (input_width, output_width), b (output_width) or None."""

    kind = "linear"
    axes = (0, 1)

    bias: NamedParameter | None = None

    @classmethod
    def initialize(
        cls, prefix: str, input_width: int, output_width: int, *, bias: bool, rng: SplitMix64
    ) -> Linear:
        """Xavier-uniform `prefix.weight` and, if asked, a zero `prefix.bias`.

        A refusal leaves `rng` where it was: raises an InitializationError.
        """
        with rng.trial() as trial:
            weight = xavier_uniform(f"{prefix}.weight", input_width, output_width, trial)
            zeros = named_parameter(f"{prefix}.bias", np.zeros(output_width)) if bias else None
            return cls(weight, zeros)


def wrapped(layer: str, **weights: NamedParameter) -> list[Linear]:
    """A map without bias for each weight. Raises PartFailed, which names the map."""
    maps = []
    for part, weight in weights.items():
        with attributed(PartFailed, layer=layer, part=part):
            maps.append(Linear(weight))
    return maps


def drawn(layer: str, prefix: str, rng: SplitMix64, **widths: tuple[int, int]) -> list[Linear]:
    """A Xavier-uniform map without bias for each (inputs, outputs), drawn in this order.

    A refusal leaves `rng` where it was: raises PartFailed, which names the map.
    """
    maps = []
    with rng.trial() as trial:
        for part, (inputs, outputs) in widths.items():
            with attributed(PartFailed, layer=layer, part=part):
                name = f"{prefix}.{part}"
                maps.append(Linear.initialize(name, inputs, outputs, bias=False, rng=trial))
    return maps

"""Chapter 26: what the learner report has beside the records."""

from itertools import combinations
from typing import Any

import numpy as np

from ....core.autodiff import constant
from ....core.errors import ShapeMismatch
from ....core.nn.qkv import QKV
from ....core.nn.splitmix64 import SplitMix64
from ..._probes import equal, refused
from .computation import SEED, Computation, QKVFixture, zeros


def facts(fixture: QKVFixture, computation: Computation) -> dict[str, Any]:
    layer, x = computation.layer, computation.x
    batch, tokens, model = x.shape
    head = layer.head_width
    probes = {"rule": x.shape, "batch": (2 * batch, tokens, model), "empty": (batch, 0, model)}
    return {
        "layer": layer,
        "independent": initial_weights_differ(fixture),
        "probes": {name: shape_rule(layer, shape) for name, shape in probes.items()},
        "head_mismatch": refused(
            lambda: zeros((model, head), (model, head + 1), (model, head)),
            ShapeMismatch(layer="Q/K/V", part="key head width", expected=head, found=head + 1),
        ),
        "seed": SEED,
    }


def shape_rule(layer: QKV, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """An input's shape, and the one that all three outputs have."""
    (output,) = {output.shape for output in layer(constant(np.zeros(shape)))}
    return {"input": shape, "output": output}


def initial_weights_differ(fixture: QKVFixture) -> bool:
    """Whether a fresh layer's weights are three leaves with three different values."""
    (model,), (head,) = fixture.extents["model"], fixture.extents["head"]
    layer = QKV.initialize(fixture.parameter_prefix, model, head, SplitMix64(SEED))
    return all(
        a.tensor is not b.tensor and not equal(a.tensor.value, b.tensor.value)
        for a, b in combinations(layer.parameters, 2)
    )

"""The fixture of `torch_rnn`: numbers, and what PyTorch made of them."""

from typing import Any

import numpy as np

from ....core.arrays import Array
from ....core.numerics.float32 import Array32, nearest
from ....fixtures.errors import FixtureError
from ....fixtures.fixture import Fixture, integer, real, reals, word

NAMES = ("weight_ih_l0", "weight_hh_l0", "head.weight")  # as PyTorch names them, as it draws them
SEEDS = range(-(2**63), 2**64)  # of torch.manual_seed; its generator takes the low 32 bits
REFERENCES = {  # the field of each tensor that can be compared
    name: "reference_" + name.replace(".", "_")
    for name in (*NAMES, "output", "prediction", "loss", *(f"{name}.grad" for name in NAMES))
}


def _gave(default: Any, shape: str, what: str) -> Any:
    return reals(default, shape, f'{what} as PyTorch gave it, or "none"', optional=True)


class TorchRNNFixture(Fixture):
    """A seed, the input of a batch-first nn.RNN, and the target of its head.

    The references are what PyTorch gave for these very numbers. Where the numbers are others, or
    any reference is given, the references that are not given are absent.
    """

    computed = (
        "sequences steps hidden",
        "steps hidden hidden",
        "steps hidden features",
        "outputs hidden",
    )

    name: str = word("chapter-pytorch-example", "What the trace calls these numbers")
    seed: int = integer(6, "The argument of torch.manual_seed", least=SEEDS[0])
    inputs: Array = reals(
        [[[0.2, -0.1], [0.0, 0.3], [0.4, 0.1]]], "sequences steps features", "X, batch first"
    )
    initial_state: Array = reals([[0.0, 0.0]], "sequences hidden", "h_-1; its width is the model's")
    target: Array = reals([[0.5]], "sequences outputs", "What the prediction is compared with")
    reference_weight_ih_l0: Array | None = _gave(
        [[0.102102764, 0.07619147], [0.6884815, 0.15277693]], "hidden features", "weight_ih_l0"
    )
    reference_weight_hh_l0: Array | None = _gave(
        [[-0.3752531, -0.07187108], [0.24654886, 0.35073546]], "hidden hidden", "weight_hh_l0"
    )
    reference_head_weight: Array | None = _gave(
        [[0.08500716, -0.47039944]], "outputs hidden", "The head's weight"
    )
    reference_output: Array | None = _gave(
        [[[0.012800707, 0.12181073], [0.009299001, 0.091456145], [0.03837886, 0.31405687]]],
        "sequences steps hidden",
        "The states",
    )
    reference_prediction: Array | None = _gave(
        [[-0.14446971]], "sequences outputs", "The prediction"
    )
    reference_loss: float | None = real(
        0.20767063, 'The loss as PyTorch gave it, or "none"', optional=True
    )
    reference_weight_ih_l0_grad: Array | None = _gave(
        [[-0.023598952, 0.02175575], [0.114895485, 0.054210834]],
        "hidden features",
        "The gradient of weight_ih_l0",
    )
    reference_weight_hh_l0_grad: Array | None = _gave(
        [[0.00061638124, 0.005703116], [0.003807496, 0.037042767]],
        "hidden hidden",
        "The gradient of weight_hh_l0",
    )
    reference_head_weight_grad: Array | None = _gave(
        [[-0.024734015, -0.20240015]], "outputs hidden", "The gradient of the head's weight"
    )

    def __init__(self, **values: Any) -> None:
        references = {*REFERENCES.values()}
        changed = any(
            not np.array_equal(values[name], self.specs[name].default)
            for name in ("seed", "inputs", "initial_state", "target")
            if name in values
        )
        if changed or values.keys() & references:
            values = dict.fromkeys(references) | values
        super().__init__(**values)


def single(name: str, values: Any) -> Array32:
    """Values of a field as PyTorch takes them. Raises FixtureError beyond the range of float32."""
    rounded = nearest(np.asarray(values))
    if not np.isfinite(rounded).all():
        found = float(np.asarray(values)[~np.isfinite(rounded)][0])
        raise FixtureError(name, "numbers within the range of float32", repr(found))
    return rounded

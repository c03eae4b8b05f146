"""Plans against numpy's broadcasting; functions are called once a result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from llm_trace.core.autodiff.errors import IncompatibleBroadcast, MatmulBatchMismatch
from llm_trace.core.tensors.broadcasting import BroadcastPlan, broadcast_map, broadcast_plan
from llm_trace.core.tensors.errors import ShapeOverflow


def test_a_known_plan() -> None:
    plan = broadcast_plan((2, 3), (3,))
    assert plan == BroadcastPlan((2, 3), (3,), (2, 3), (1, 3), (2, 3))
    assert [*plan.reads()][4] == ((1, 1), (1, 1), (1,))


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_plans_are_numpys(shapes: object) -> None:
    left, right = shapes.input_shapes  # type: ignore[attr-defined]
    plan = broadcast_plan(left, right)
    a, b = (np.arange(np.prod(shape)).reshape(shape) for shape in (left, right))
    wide_a, wide_b = np.broadcast_arrays(a, b)
    assert plan.output == wide_a.shape
    for at, left_at, right_at in plan.reads():
        assert (wide_a[at], wide_b[at]) == (a[left_at], b[right_at])
    assert a.reshape(plan.aligned_left).ndim == b.reshape(plan.aligned_right).ndim == wide_a.ndim
    calls: list[tuple[float, float]] = []

    def product(x: float, y: float) -> float:
        calls.append((x, y))
        return x * y

    found = broadcast_map(product, a.astype(float), b.astype(float))
    assert found.tobytes() == (a.astype(float) * b).tobytes()
    assert len(calls) == found.size


def test_nothing_calls_nothing() -> None:
    def never(x: float, y: float) -> float:
        raise AssertionError

    assert broadcast_map(never, np.zeros((2, 0, 3)), np.zeros(3)).shape == (2, 0, 3)


def test_the_leftmost_clash_and_sizes_beyond_64_bits() -> None:
    with pytest.raises(IncompatibleBroadcast) as caught:
        broadcast_plan((4, 2, 3), (5, 2, 2))
    assert caught.value == IncompatibleBroadcast(axis=0, left=4, right=5)
    with pytest.raises(MatmulBatchMismatch) as batch:
        broadcast_plan((2,), (3,), MatmulBatchMismatch)
    assert batch.value == MatmulBatchMismatch(axis=0, left=2, right=3)
    with pytest.raises(ShapeOverflow):
        broadcast_plan((1 << 40, 1), (1 << 40,))

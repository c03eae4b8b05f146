"""Arrays whose sums depend on their order, in every memory layout."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def spread(shape: Shape, seed: int) -> Array:
    """Values over twelve binary orders of magnitude: their sums depend on the order."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, size=shape)


def assert_bits(ours: Array, shape: Shape, expected: list[float]) -> None:
    assert ours.shape == shape
    assert ours.dtype == np.float64
    assert ours.tobytes() == np.array(expected, dtype=np.float64).tobytes()


def every_second(x: Array) -> Array:
    room = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan)
    room[..., ::2] = x
    return room[..., ::2]


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "row-major": np.ascontiguousarray,
    "column-major": np.asfortranarray,
    "strided": every_second,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
}

"""One driver for all elementary functions: compute with 106 bits, round once, prove it or repeat.

A kernel returns (high, low, error): the true value lies within `error` of high + low. If
high + (low - error) and high + (low + error) are the same float64, then so is every value between,
the true one included: it is correctly rounded (Ziv's rounding test). The few elements that fail
go one by one to an exact scalar function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .double_double import Array

Booleans: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"
Plateaus: TypeAlias = "tuple[tuple[float, float], tuple[float, float]]"

BLOCK = 8192  # elements; a kernel's temporaries then stay in the second-level cache


def correctly_rounded(
    kernel: Callable[..., tuple[Array, Array, Array]],
    exact: Callable[..., float],
    *arguments: ArrayLike,
    identity_below: float = 0.0,
    plateaus: Plateaus | None = None,
) -> Array:
    """Evaluate a function of one or more arguments, element by element.

    `identity_below`: for |x| below this the correctly rounded result is x itself.
    `plateaus`: ((a, floor), (b, ceiling)) if the result is `floor` for all x < a and `ceiling` for
    all x > b; spares the scalar function the elements that saturate.
    """
    arrays = [np.asarray(a, dtype=np.float64) for a in arguments]
    if len(arrays) > 1:
        arrays = list(np.broadcast_arrays(*arrays))
    flat = [a.ravel() for a in arrays]
    result = np.empty(flat[0].size)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, BLOCK):
            block = [a[start : start + BLOCK] for a in flat]
            high, low, error = kernel(*block)
            # The lower end comes first: high = low = -0.0 with error 0.0 then stays -0.0.
            rounded = high + (low - error)
            settled = rounded == high + (low + error)
            if identity_below:
                tiny = np.abs(block[0]) < identity_below
                if np.count_nonzero(tiny):
                    np.copyto(rounded, block[0], where=tiny)
                    settled |= tiny
            if np.count_nonzero(settled) < settled.size:
                _settle(rounded, ~settled, exact, block, plateaus)
            result[start : start + BLOCK] = rounded
    return result.reshape(arrays[0].shape)


def _settle(
    rounded: Array,
    unsettled: Booleans,
    exact: Callable[..., float],
    block: list[Array],
    plateaus: Plateaus | None,
) -> None:
    """Fill in the elements that the rounding test left open."""
    if plateaus is not None:
        (below, floor), (above, ceiling) = plateaus
        for reached, value in ((block[0] < below, floor), (block[0] > above, ceiling)):
            np.copyto(rounded, value, where=reached)
            unsettled &= ~reached
    for i in np.flatnonzero(unsettled).tolist():
        rounded[i] = exact(*(a[i].item() for a in block))


def distrust(error: Array, outside: Booleans) -> None:
    """Give elements outside a kernel's domain an infinite error, so that no test settles them."""
    if np.count_nonzero(outside):
        error[outside] = np.inf

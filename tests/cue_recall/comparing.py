"""Equality to the bit of what trainings are made of."""

from typing import Any

import numpy as np


def same(left: Any, right: Any) -> bool:
    """Whether two values, arrays or containers of them hold the same bits in the same places."""
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype and left.shape == right.shape) and (
            left.tobytes() == right.tobytes()
        )
    if isinstance(left, dict):
        return same([*left.items()], [*right.items()])
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)

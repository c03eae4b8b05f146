"""What the records of a row say of its place."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array


def labels(h: Array, tokens: Sequence[str] | None) -> dict[str, Any]:
    """For every row of (..., tokens, width) its word, and its sequence if there are several."""
    *leading, _, _ = h.shape
    numbers = np.arange(math.prod(leading)).reshape(*leading, 1).astype(object)
    sequence: Any = numbers if leading else None
    return {
        "sequence": np.broadcast_to(sequence, h.shape[:-1]),
        "token": np.broadcast_to(np.array(tokens, object), h.shape[:-1]),
    }

"""The one type of array. Spelled without `numpy.typing`, whose import takes milliseconds."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
IndexArray: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.intp]]

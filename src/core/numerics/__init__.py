"""The only place where float rounding is decided.

Elementary functions are correctly rounded; sums run in a stated order. See `elementary` modules and
`sums` for the rules. Nothing here calls libm, a BLAS, or numpy's own exp, log, tanh, sum or dot,
because their last digits differ between machines.
"""

from .exponential import exp
from .hyperbolic import tanh
from .logarithm import log, log1p
from .products import matmul
from .sums import scatter_add_rows, sum_axis, unbroadcast

__all__ = ["exp", "log", "log1p", "matmul", "scatter_add_rows", "sum_axis", "tanh", "unbroadcast"]

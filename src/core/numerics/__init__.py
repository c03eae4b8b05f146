"""The only place where float rounding is decided.

Elementary functions are correctly rounded, one module a family; sums and products run in a stated
order. Nothing here calls libm, a BLAS, or numpy's own exp, log, tanh, sum or dot: their last digits
differ between machines. `glibc` works out two of libm's functions for the outputs of programs that
called them. What most traces need is gathered here; sine, cosine, powers and the error function are
imported from their modules by those that ask for them.
"""

from .elementary import exp, log1p
from .exponential import sigmoid
from .hyperbolic import tanh
from .logarithm import log
from .products import matmul
from .sums import scatter_add_rows, sum_axis, unbroadcast

__all__ = [
    "exp",
    "log",
    "log1p",
    "matmul",
    "scatter_add_rows",
    "sigmoid",
    "sum_axis",
    "tanh",
    "unbroadcast",
]

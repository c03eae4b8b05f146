"""Reverse-mode automatic differentiation on float64 arrays.

An operation's forward rule and its vector-Jacobian product stand together, one module a family.
"""

from .backward import BackwardTrace, Edge, backward, topology, trace_backward
from .elementwise import add, exp, log, mul, relu, silu, tanh
from .gathering import gather_rows
from .probabilities import indexed_mean_nll, log_softmax
from .products import matmul
from .reductions import mean_axis, sum_axis
from .shaping import broadcast_to, reshape, transpose
from .tensor import Tensor, constant, no_grad, parameter

__all__ = [
    "BackwardTrace",
    "Edge",
    "Tensor",
    "add",
    "backward",
    "broadcast_to",
    "constant",
    "exp",
    "gather_rows",
    "indexed_mean_nll",
    "log",
    "log_softmax",
    "matmul",
    "mean_axis",
    "mul",
    "no_grad",
    "parameter",
    "relu",
    "reshape",
    "silu",
    "sum_axis",
    "tanh",
    "topology",
    "trace_backward",
    "transpose",
]

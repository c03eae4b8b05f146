"""Operations on one element at a time, or on pairs of elements with broadcasting.

In every VJP of this package `g` is the adjoint of the output.
"""

import numpy as np

from ..arrays import Array
from ..numerics import exp as exp_
from ..numerics import log as log_
from ..numerics import sigmoid as sigmoid_
from ..numerics import tanh as tanh_
from ..numerics import unbroadcast
from .errors import IncompatibleBroadcast, MatmulBatchMismatch, WrongArgument
from .operation import Forward, binary, unary
from .operators import described, is_number

_SQRT_HALF = 0.7071067811865476
_DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)
_SQRT_2_OVER_PI = 0.7978845608028654
_CUBIC = 0.044715


@binary("add")
def add(left: Array, right: Array) -> Forward:
    """left + right, broadcast. Raises IncompatibleBroadcast."""
    require_broadcast(left.shape, right.shape)

    def vjp(g: Array) -> tuple[Array, Array]:
        return unbroadcast(g, left.shape), unbroadcast(g, right.shape)

    return left + right, vjp


@binary("sub")
def sub(left: Array, right: Array) -> Forward:
    """left - right, broadcast. Raises IncompatibleBroadcast."""
    require_broadcast(left.shape, right.shape)

    def vjp(g: Array) -> tuple[Array, Array]:
        return unbroadcast(g, left.shape), unbroadcast(-g, right.shape)

    return left - right, vjp


@binary("mul")
def mul(left: Array, right: Array) -> Forward:
    """left * right, broadcast. Raises IncompatibleBroadcast."""
    require_broadcast(left.shape, right.shape)

    def vjp(g: Array) -> tuple[Array, Array]:
        return unbroadcast(g * right, left.shape), unbroadcast(g * left, right.shape)

    return left * right, vjp


@binary("div")
def div(left: Array, right: Array) -> Forward:
    """left / right, broadcast. Raises IncompatibleBroadcast; division by 0 is NonFiniteForward."""
    require_broadcast(left.shape, right.shape)
    y = left / right

    def vjp(g: Array) -> tuple[Array, Array]:
        to_left = g / right
        return unbroadcast(to_left, left.shape), unbroadcast(-(to_left * y), right.shape)

    return y, vjp


@unary("neg")
def neg(x: Array) -> Forward:
    """-x."""
    return -x, lambda g: (-g,)


@unary("sqrt")
def sqrt(x: Array) -> Forward:
    """The square root, correctly rounded; its derivative at 0 is not finite."""
    y = np.sqrt(x)
    return y, lambda g: (g / (2.0 * y),)


@unary("power")
def power(x: Array, *, exponent: float) -> Forward:
    """x^exponent, correctly rounded; a negative x takes whole exponents only, and 0^0 is 1.

    Raises WrongArgument for an exponent that is no number.
    """
    from ..numerics.power import power as power_  # which no trace of the course needs

    if not is_number(exponent):
        raise WrongArgument(
            operation="power", expected="a number as exponent", found=described(exponent)
        )
    p = float(exponent)

    def vjp(g: Array) -> tuple[Array]:
        slope = np.zeros(x.shape) if p == 0.0 else p * power_(x, p - 1.0)
        return (g * slope,)

    return power_(x, p), vjp


@unary("exp")
def exp(x: Array) -> Forward:
    """e^x."""
    y = exp_(x)
    return y, lambda g: (g * y,)


@unary("log")
def log(x: Array) -> Forward:
    """Natural logarithm."""
    return log_(x), lambda g: (g / x,)


@unary("tanh")
def tanh(x: Array) -> Forward:
    """Hyperbolic tangent."""
    y = tanh_(x)
    return y, lambda g: (g * (1.0 - y * y),)


@unary("sigmoid")
def sigmoid(x: Array) -> Forward:
    """1 / (1 + e^-x), correctly rounded; the gate of recurrent cells."""
    y = sigmoid_(x)
    return y, lambda g: (g * (y * (1.0 - y)),)


@unary("relu")
def relu(x: Array) -> Forward:
    """max(x, 0), with derivative 0 at 0."""
    positive = x > 0.0
    return np.where(positive, x, 0.0), lambda g: (np.where(positive, g, 0.0),)


@unary("silu")
def silu(x: Array) -> Forward:
    """x * sigmoid(x). Source: Elfwing et al. 2017 (arXiv:1702.03118); Swish with beta = 1."""
    s = stable_sigmoid(x)
    return x * s, lambda g: (g * (s * (1.0 + x * (1.0 - s))),)


@unary("gelu")
def gelu(x: Array, *, approximate: bool = False) -> Forward:
    """x Phi(x) with the normal distribution's Phi(x) = (1 + erf(x / sqrt 2)) / 2.

    Approximately (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, with its own derivative. Source:
    Hendrycks and Gimpel 2016, Gaussian Error Linear Units (arXiv:1606.08415).
    """
    phi, slope = _tanh_phi(x) if approximate else _normal_phi(x)
    return x * phi, lambda g: (g * (phi + x * slope),)


def _normal_phi(x: Array) -> tuple[Array, Array]:
    """Phi and its derivative, the density e^(-x^2 / 2) / sqrt(2 pi)."""
    from ..numerics.error_function import erf  # whose tables most traces need not load

    return 0.5 * (1.0 + erf(x * _SQRT_HALF)), exp_(-0.5 * (x * x)) * _DENSITY


def _tanh_phi(x: Array) -> tuple[Array, Array]:
    t = tanh_(_SQRT_2_OVER_PI * (x + _CUBIC * (x * x * x)))
    rest = 1.0 - t * t
    inner = _SQRT_2_OVER_PI * (1.0 + 3.0 * _CUBIC * (x * x))
    return 0.5 * (1.0 + t), 0.5 * rest * np.where(rest == 0.0, 0.0, inner)  # of inf, too


def stable_sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) where x >= 0 and e^x / (1 + e^x) below: the exponential never overflows.

    Composed of rounded steps as the course's SiLU is, whose printed digits depend on them;
    `sigmoid` is the function rounded once.
    """
    positive = x >= 0.0
    e = exp_(np.where(positive, -x, x))
    return np.where(positive, 1.0, e) / (1.0 + e)


def require_broadcast(
    left: tuple[int, ...],
    right: tuple[int, ...],
    error: type[IncompatibleBroadcast | MatmulBatchMismatch] = IncompatibleBroadcast,
) -> tuple[int, ...]:
    """The common shape of both. Raises `error` for the leftmost axis that clashes."""
    if left == right:
        return left
    rank = max(len(left), len(right))
    padded = ((1,) * (rank - len(shape)) + shape for shape in (left, right))
    shape = []
    for axis, (a, b) in enumerate(zip(*padded, strict=True)):
        if a != b and 1 not in (a, b):
            raise error(axis=axis, left=a, right=b)
        shape.append(b if a == 1 else a)
    return tuple(shape)

"""exp and log1p as operations call them: correctly rounded, unless a caller asks for glibc's."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from . import exponential, logarithm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from .double_double import Array

T = TypeVar("T")


class _Functions(NamedTuple):
    exp: Callable[[ArrayLike], Array]
    log1p: Callable[[ArrayLike], Array]


_CORRECTLY_ROUNDED = _Functions(exponential.exp, logarithm.log1p)
_chosen = ContextVar("functions", default=_CORRECTLY_ROUNDED)


def exp(x: ArrayLike) -> Array:
    """e**x, correctly rounded to nearest even; see `exponential.exp`."""
    return _chosen.get().exp(x)


def log1p(x: ArrayLike) -> Array:
    """log(1 + x), correctly rounded to nearest even; see `logarithm.log1p`."""
    return _chosen.get().log1p(x)


def with_glibc(items: Iterator[T]) -> Iterator[T]:
    """The same items, each computed with the exp and log1p of `numerics.glibc`.

    Whoever takes the items computes with the correctly rounded functions between two of them.
    """
    from . import glibc

    context = copy_context()
    context.run(_chosen.set, _Functions(glibc.exp, glibc.log1p))
    while True:
        try:
            item = context.run(next, items)
        except StopIteration:
            return
        yield item

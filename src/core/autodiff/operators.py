"""Python's operators on tensors: the operations under other signs, nothing of their own.

An operation enters itself in `OPERATIONS` where it is defined, so that a tensor finds it without
importing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import ReductionAxisOutOfBounds, WrongArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""What the operators call, by the name under which an operation is reported."""


def entered(name: str) -> Callable[[F], F]:
    """Decorate a function so that tensors find it as `name`."""

    def enter(function: F) -> F:
        OPERATIONS[name] = function
        return function

    return enter


class Operators:
    """`+ - * / @ **`, unary minus, `.T`, indexing, `sum`, `mean`, `reshape` and `backward`.

    The other side of an operator is a tensor or a number; anything else raises WrongArgument.
    """

    __slots__ = ()
    __array_ufunc__ = None  # an array on the left leaves the operator to the tensor

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]:
            """The extents."""

    def __add__(self, other: Tensor | float) -> Tensor:
        return _applied("add", self, other)

    def __radd__(self, other: float) -> Tensor:
        return _applied("add", other, self)

    def __sub__(self, other: Tensor | float) -> Tensor:
        return _applied("sub", self, other)

    def __rsub__(self, other: float) -> Tensor:
        return _applied("sub", other, self)

    def __mul__(self, other: Tensor | float) -> Tensor:
        return _applied("mul", self, other)

    def __rmul__(self, other: float) -> Tensor:
        return _applied("mul", other, self)

    def __truediv__(self, other: Tensor | float) -> Tensor:
        return _applied("div", self, other)

    def __rtruediv__(self, other: float) -> Tensor:
        return _applied("div", other, self)

    def __matmul__(self, other: Tensor) -> Tensor:
        return _applied("matmul", self, other)

    def __rmatmul__(self, other: object) -> Tensor:
        return _applied("matmul", other, self)

    def __pow__(self, exponent: float) -> Tensor:
        found: Tensor = OPERATIONS["power"](self, exponent=exponent)
        return found

    def __rpow__(self, base: object) -> Tensor:
        raise WrongArgument(operation="power", expected="a number as exponent", found="a tensor")

    def __neg__(self) -> Tensor:
        return _applied("neg", self)

    def __getitem__(self, at: Any) -> Tensor:
        """Whole numbers, slices without a step and `...`; negative numbers count from the end."""
        found: Tensor = OPERATIONS["index"](self, at)
        return found

    def __iter__(self) -> Iterator[Tensor]:
        """The parts along the first axis. Raises WrongArgument for a scalar."""
        if not self.shape:
            raise WrongArgument(operation="iteration", expected="an axis", found="a scalar")
        return (self[index] for index in range(self.shape[0]))

    @property
    def T(self) -> Tensor:  # noqa: N802
        """A matrix with its axes exchanged. Raises WrongArgument for any other rank."""
        if len(self.shape) != 2:
            raise WrongArgument(
                operation="T", expected="a matrix", found=f"a tensor of rank {len(self.shape)}"
            )
        found: Tensor = OPERATIONS["transpose"](self, first_axis=0, second_axis=1)
        return found

    def reshape(self, *shape: int) -> Tensor:
        """The same elements, row-major. Raises ReshapeElementCount, WrongArgument."""
        for extent in shape:
            if whole("reshape", extent) < 0:
                raise WrongArgument(
                    operation="reshape", expected="extents from 0", found=str(extent)
                )
        found: Tensor = OPERATIONS["reshape"](self, shape=tuple(map(int, shape)))
        return found

    def sum(self, axis: int | None = None, *, keep: bool = False) -> Tensor:
        """Over one axis, or row-major over everything; kept axes have extent 1.

        Raises ReductionAxisOutOfBounds, WrongArgument.
        """
        return self._reduced("sum", axis, keep=keep)

    def mean(self, axis: int | None = None, *, keep: bool = False) -> Tensor:
        """The same divided by the count. Raises EmptyMeanAxis too."""
        return self._reduced("mean", axis, keep=keep)

    def _reduced(self, name: str, axis: int | None, *, keep: bool) -> Tensor:
        rank = len(self.shape)
        if axis is not None:
            number = whole(name, axis)
            if not -rank <= number < rank:
                raise ReductionAxisOutOfBounds(axis=number, rank=rank)
            found: Tensor = OPERATIONS[name](self, axis=number % rank, keep=keep)
            return found
        flat = self.reshape(_size(self.shape))
        total: Tensor = OPERATIONS[name](flat, axis=0)
        return total.reshape(*(1,) * rank) if keep else total

    def backward(self, seed: ArrayLike | None = None, *, retain: bool = True) -> None:
        """Add d(seed . self)/d(parameter) to the gradients of all parameters below self."""
        OPERATIONS["backward"](self, seed, retain=retain)


def whole(operation: str, value: object) -> int:
    """A whole number. Raises WrongArgument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise WrongArgument(operation=operation, expected="a whole number", found=described(value))
    return int(value)


def is_number(value: object) -> bool:
    """Whether a value is a real number, which a tensor of rank 0 can hold."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def described(value: object) -> str:
    """What a value is, in a user's words."""
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {value.shape}"
    if isinstance(value, str | bool | type(None)):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _applied(name: str, *operands: object) -> Tensor:
    """The operation on tensors, where numbers become constants."""
    numbers = name != "matmul"
    tensors = (
        OPERATIONS["constant"](operand) if numbers and is_number(operand) else operand
        for operand in operands
    )
    found: Tensor = OPERATIONS[name](*tensors)
    return found

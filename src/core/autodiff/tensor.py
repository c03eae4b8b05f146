"""The node of the computation graph.

A tensor is a value and the memory of how it was made. Values and gradients are read-only arrays
that are replaced and never written to, so an array once handed out keeps its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..errors import CoreError
from .errors import NonFiniteLeaf, NotAParameter, WrongArgument
from .operators import Operators, described, entered, is_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Vjp = Callable[[Array], tuple[Array, ...]]
"""Maps the adjoint of an output to one contribution for each operand, in operand order."""

LEAVES = ("parameter", "constant", "detached")

_recording: ContextVar[bool] = ContextVar("recording", default=True)


class Tensor(Operators):
    """One node: compared and hashed by identity.

    `operation` names what made it, `arguments` holds that operation's static arguments and
    `parents` its operands. `tracked` says whether a parameter is among its ancestors.
    """

    __slots__ = (
        "arguments",
        "gradient",
        "operation",
        "parents",
        "released",
        "revision",
        "revisions",
        "tracked",
        "value",
        "verified",
        "vjp",
    )

    revision: int  # how often a parameter has been assigned
    gradient: Array | None  # of a parameter: the sum of all passes since it was last zero

    def __init__(
        self,
        value: Array,
        operation: str,
        *,
        tracked: bool,
        parents: tuple[Tensor, ...] = (),
        vjp: Vjp | None = None,
        arguments: Mapping[str, object] = MappingProxyType({}),
        verified: int = 0,
    ) -> None:
        self.value: Array = frozen(value)
        self.operation = operation
        self.arguments = arguments
        self.tracked = tracked
        self.parents = parents
        self.revisions = tuple(parent.revision for parent in parents)
        self.vjp = vjp
        self.gradient = None
        self.revision = 0
        self.released = False
        self.verified = verified

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of `value`, `()` for a scalar."""
        return self.value.shape

    @property
    def is_parameter(self) -> bool:
        """Whether this leaf stores a gradient."""
        return self.operation == "parameter"

    def detach(self) -> Tensor:
        """A new leaf with the same value, through which no gradient flows."""
        return Tensor(self.value, "detached", tracked=False)

    def zero_gradient(self) -> None:
        """Set the stored gradient to +0.0. Raises NotAParameter elsewhere than on a parameter."""
        self._require_parameter("clear a gradient")
        self.gradient = frozen(np.zeros(self.shape))

    def assign(self, value: ArrayLike) -> None:
        """Give a parameter a new value of the same shape; graphs built before become stale.

        Raises NotAParameter, ValueError for another shape, NonFiniteLeaf.
        """
        self._require_parameter("assign a value")
        array = frozen(copied(value))
        if array.shape != self.shape:
            raise ValueError(f"assign: expected shape {self.shape}, found {array.shape}")
        refuse_non_finite(array, NonFiniteLeaf, operation=self.operation)
        self.value = array
        self.revision += 1

    def _require_parameter(self, action: str) -> None:
        if not self.is_parameter:
            raise NotAParameter(action=action, operation=self.operation)

    def __repr__(self) -> str:
        return f"Tensor({self.operation}, shape={self.shape})"


def parameter(value: ArrayLike) -> Tensor:
    """A trainable leaf whose gradient starts at +0.0. Raises WrongArgument, NonFiniteLeaf."""
    leaf = _leaf(value, "parameter", tracked=True)
    leaf.zero_gradient()
    return leaf


@entered("constant")
def constant(value: ArrayLike) -> Tensor:
    """A leaf without a gradient. Raises WrongArgument, NonFiniteLeaf."""
    return _leaf(value, "constant", tracked=False)


def _leaf(value: ArrayLike, operation: str, *, tracked: bool) -> Tensor:
    leaf = Tensor(copied(value), operation, tracked=tracked)
    refuse_non_finite(leaf.value, NonFiniteLeaf, operation=operation)
    return leaf


@contextmanager
def no_grad() -> Iterator[None]:
    """Inside, results are untracked and have no parents; values and checks stay as they are."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


def is_recording() -> bool:
    """Whether operations remember their operands here."""
    return _recording.get()


def copied(values: ArrayLike) -> Array:
    """A float64 array of its own with these values. Raises WrongArgument."""
    try:
        found = np.asarray(values)
        if found.dtype.kind in "biuf" or all(map(is_number, found.flat)):  # not text, not complex
            return np.array(found, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):  # rows of several lengths, no numbers
        pass
    raise WrongArgument(
        operation="tensor",
        expected="real numbers, in rows of one length",
        found=described(values),
    )


def require_tensors(operation: str, values: object) -> tuple[Tensor, ...]:
    """The tensors of a list. Raises WrongArgument for anything else, and where there is none."""
    if not isinstance(values, list | tuple) or not values:
        found = "none" if isinstance(values, list | tuple) else described(values)
        raise WrongArgument(operation=operation, expected="a list of tensors", found=found)
    for value in values:
        require_tensor(operation, value)
    return tuple(values)


def require_tensor(operation: str, value: object) -> None:
    """Raise WrongArgument for anything but a tensor."""
    if not isinstance(value, Tensor):
        raise WrongArgument(
            operation=operation,
            expected="a tensor (constant() and parameter() make one)",
            found=described(value),
        )


def frozen(array: Array) -> Array:
    """The same values, read-only from here on: the caller gives the array away."""
    array = np.asarray(array, dtype=np.float64)
    array.flags.writeable = False
    return array


def first_non_finite(value: Array) -> int | None:
    """The first flat index whose value is NaN or infinite, if there is one."""
    finite = np.isfinite(value)
    return None if finite.all() else int(np.argmin(finite))


def refuse_non_finite(value: Array, error: type[CoreError], **facts: object) -> None:
    """Raise `error` with that index and its value, if there is one."""
    index = first_non_finite(value)
    if index is not None:
        raise error(**facts, index=index, value=float(value.flat[index]))

"""Turn a rule on arrays into an operation on tensors.

A rule computes its value and returns it with the function that pulls an adjoint back to the
operands. That function keeps what it needs of the forward pass, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from ..arrays import Array
from .errors import NonFiniteForward, ReleasedOperand
from .operators import entered
from .release import reaches_release, releases
from .tensor import (
    Tensor,
    Vjp,
    frozen,
    is_recording,
    refuse_non_finite,
    require_tensor,
    require_tensors,
)

P = ParamSpec("P")
Forward = tuple[Array, Vjp]


def unary(
    name: str,
) -> Callable[[Callable[Concatenate[Array, P], Forward]], Callable[Concatenate[Tensor, P], Tensor]]:
    """Decorate `rule(x, *, arguments)`; the operation is reported as `name`."""

    def decorate(
        rule: Callable[Concatenate[Array, P], Forward],
    ) -> Callable[Concatenate[Tensor, P], Tensor]:
        @entered(name)
        @wraps(rule)
        def operation(x: Tensor, /, *args: P.args, **arguments: P.kwargs) -> Tensor:
            return _apply(name, lambda: rule(x.value, *args, **arguments), (x,), arguments)

        return operation

    return decorate


def binary(
    name: str,
) -> Callable[
    [Callable[Concatenate[Array, Array, P], Forward]],
    Callable[Concatenate[Tensor, Tensor, P], Tensor],
]:
    """Decorate `rule(left, right, *, arguments)`; the operation is reported as `name`."""

    def decorate(
        rule: Callable[Concatenate[Array, Array, P], Forward],
    ) -> Callable[Concatenate[Tensor, Tensor, P], Tensor]:
        @entered(name)
        @wraps(rule)
        def operation(
            left: Tensor, right: Tensor, /, *args: P.args, **arguments: P.kwargs
        ) -> Tensor:
            return _apply(
                name,
                lambda: rule(left.value, right.value, *args, **arguments),
                (left, right),
                arguments,
            )

        return operation

    return decorate


def nary(
    name: str,
) -> Callable[
    [Callable[Concatenate[Sequence[Array], P], Forward]],
    Callable[Concatenate[Sequence[Tensor], P], Tensor],
]:
    """Decorate `rule(arrays, *, arguments)`; the operation is reported as `name`."""

    def decorate(
        rule: Callable[Concatenate[Sequence[Array], P], Forward],
    ) -> Callable[Concatenate[Sequence[Tensor], P], Tensor]:
        @entered(name)
        @wraps(rule)
        def operation(
            operands: Sequence[Tensor], /, *args: P.args, **arguments: P.kwargs
        ) -> Tensor:
            tensors = require_tensors(name, operands)
            return _apply(
                name,
                lambda: rule([tensor.value for tensor in tensors], *args, **arguments),
                tensors,
                arguments,
            )

        return operation

    return decorate


def _apply(
    name: str,
    rule: Callable[[], Forward],
    operands: tuple[Tensor, ...],
    arguments: Mapping[str, object],
) -> Tensor:
    """Run the rule; whatever is refused, nothing that was recorded before has changed.

    Raises WrongArgument, ReleasedOperand, whatever the rule refuses, then NonFiniteForward.
    """
    for position, operand in enumerate(operands):
        require_tensor(name, operand)
        if reaches_release(operand):
            raise ReleasedOperand(operation=name, operand=position)
    with np.errstate(all="ignore"):  # what leaves the finite range is refused by name below
        value, vjp = rule()
    value = frozen(value)
    refuse_non_finite(value, NonFiniteForward, operation=name)
    if not is_recording():
        return Tensor(value, name, tracked=False)
    return Tensor(
        value,
        name,
        tracked=any(operand.tracked for operand in operands),
        parents=operands,
        vjp=vjp,
        arguments=arguments,
        verified=releases(),
    )

"""Gradients of many parameters, one row a record."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ...core.arrays import Array
from ...core.autodiff import Tensor
from ...core.nn.parameters import NamedParameter
from ...report.records import Record
from .._probes import positions

Row = TypeVar("Row", bound=Record)


def parameter_rows(
    declared: Callable[..., Row],
    parameters: Iterable[NamedParameter],
    gradient: Callable[[Tensor], Array],
) -> Iterator[Row]:
    """Every parameter in turn, a vector as one row, as records with name, row, shape and values."""
    for name, weight in parameters:
        for row, values in enumerate(positions(gradient(weight))):
            yield declared(
                name=name,
                row=row if len(weight.shape) == 2 else None,
                shape=weight.shape,
                values=values,
            )

"""Gradients of many parameters, one row a record."""

from collections.abc import Callable, Iterable, Iterator

from ..core.arrays import Array
from ..core.autodiff import Tensor
from ..core.nn.parameters import NamedParameter
from ..report.records import Record, field
from ..report.values import Int, Reals, Shape, Word
from ._probes import positions


class ParameterGradient(Record):
    """One row of a parameter's gradient, added up over all positions."""

    name: Word = field("the parameter's dotted name", aligns=True)
    row: Int | None = field(
        "of a matrix, 0-based: a token id of an embedding, else the feature written",
        aligns=True,
        omitted=True,
    )
    shape: Shape = field("of the whole parameter: tokens x features, else out x in")
    values: Reals = field("d loss / d this row")


def parameter_gradients(
    parameters: Iterable[NamedParameter], gradient: Callable[[Tensor], Array]
) -> Iterator[ParameterGradient]:
    """Every parameter in turn, a vector as one row."""
    for name, weight in parameters:
        for row, values in enumerate(positions(gradient(weight))):
            yield ParameterGradient(
                name=name,
                row=row if len(weight.shape) == 2 else None,
                shape=weight.shape,
                values=values,
            )

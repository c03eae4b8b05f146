"""Records read off a pass: a field of a record is the node of its name.

Nodes are given by the names of fields: `{"input": x, **forward._asdict()}`. A field that declares
`gradient_of` is read off the way back, as the adjoint of the node that it names last:
`PositionForward.gated` is the node `gated`; where a node has the field's own name, that one is
read. What is not read off is given by keyword. A node that is None is none in every row.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import Tensor
from ..report.records import Field, Record

R = TypeVar("R", bound=Record)
Nodes = Mapping[str, Any]
"""A tensor, an array or a list of values a row, by the name of the field that shows it."""


class Backward(Protocol):
    """What knows the adjoints of one pass."""

    def adjoint(self, node: Tensor) -> Array:
        """d(output)/d(node)."""


def forward_row(kind: type[R], nodes: Nodes, at: int | tuple[int, ...], **given: Any) -> R:
    """The record of row `at` of every node. Raises TypeError for a field without a node."""
    return _record(kind, nodes, None, at, given)


def backward_row(
    kind: type[R], nodes: Nodes, backward: Backward, at: int | tuple[int, ...], **given: Any
) -> R:
    """The record of row `at`, with adjoints where it has gradients."""
    return _record(kind, nodes, backward, at, given)


def forward_rows(kind: type[R], nodes: Nodes, **given: Any) -> Iterator[R]:
    """A record a row, row-major over the leading axes; a key that has no node counts them.

    Raises TypeError where several keys are left, or none differs from row to row, and ValueError
    for nodes of different lengths.
    """
    return _records(kind, nodes, None, given)


def backward_rows(kind: type[R], nodes: Nodes, backward: Backward, **given: Any) -> Iterator[R]:
    """A record a row, with adjoints where it has gradients."""
    return _records(kind, nodes, backward, given)


def _record(
    kind: type[R],
    nodes: Nodes,
    backward: Backward | None,
    at: int | tuple[int, ...],
    given: Mapping[str, Any],
) -> R:
    given = {**_absent(kind, nodes), **given}
    values = {
        field.attribute: _item(_values(kind, field, nodes, backward)[at])
        for field in kind.fields
        if field.attribute not in given
    }
    return kind(**values, **given)


def _records(
    kind: type[R], nodes: Nodes, backward: Backward | None, given: Mapping[str, Any]
) -> Iterator[R]:
    given = {**_absent(kind, nodes), **given}
    fields = [field for field in kind.fields if field.attribute not in given]
    keys = [field.attribute for field in fields if field.aligns]
    counters = [name for name in keys if name not in nodes]
    if not keys or len(counters) > 1:
        raise TypeError(f"{kind.__name__}: expected one key to count rows with, found {counters}")
    columns = {
        field.attribute: _rows(field, _values(kind, field, nodes, backward))
        for field in fields
        if field.attribute not in counters
    }
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        values = dict(zip(columns, map(_item, row), strict=True))
        yield kind(**dict.fromkeys(counters, number), **values, **given)


def _absent(kind: type[Record], nodes: Nodes) -> dict[str, None]:
    names = (field.attribute for field in kind.fields)
    return {name: None for name in names if nodes.get(name, name) is None}


def _values(kind: type[Record], field: Field, nodes: Nodes, backward: Backward | None) -> Any:
    """The node of a field, or its adjoint, as an array; a list of other values as it is."""
    where = f"{kind.__name__}.{field.attribute}"
    if backward and field.gradient_of and field.attribute not in nodes:
        names = {expression.rpartition(".")[2] for _, expression in field.gradient_of}
        return backward.adjoint(_node(where, nodes, names))
    node = _node(where, nodes, {field.attribute})
    return node.value if isinstance(node, Tensor) else node


def _node(where: str, nodes: Nodes, names: set[str]) -> Any:
    """The node of the only name."""
    if len(names) != 1:
        raise TypeError(f"{where}: expected one node, found {sorted(names)}")
    (name,) = names
    if name not in nodes:
        raise TypeError(f"{where}: expected a node {name}, found none")
    return nodes[name]


def _rows(field: Field, values: Any) -> Sequence[Any] | Array:
    """One item a row: the last axis of an array is the row, where the field holds many values."""
    if not isinstance(values, np.ndarray):
        return list(values)
    if not field.type.many:
        return values.reshape(-1)
    return values.reshape(math.prod(values.shape[:-1]), values.shape[-1])


def _item(value: Any) -> Any:
    """A number of an array as Python's own."""
    return value.item() if isinstance(value, np.generic) else value

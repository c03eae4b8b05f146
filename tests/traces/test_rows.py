"""Records read off a pass by the names of their fields, forward and backward."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Tensor, mul, parameter, trace_backward
from llm_trace.report.records import Record, field, key
from llm_trace.report.values import Flag, Int, Real, Reals, Word
from llm_trace.traces._rows import backward_row, backward_rows, forward_row, forward_rows

Row = Annotated[Reals, "width"]


class Forward(Record):
    """A row."""

    head: Int = key("which")
    position: Int = key("where")
    word: Word | None = field("what it is called")
    input: Row = field("x")
    output: Row = field("y", "input * input")
    mean: Real = field("of the row")
    large: Flag = field("or small")


class Backward(Record):
    """A row on the way back."""

    position: Int = key("where")
    input: Row = field("x, again")
    upstream: Row = field("dL/dy", gradient_of="Forward.output")
    input_gradient: Row = field(
        "dL/dx",
        gradient_of={"position == 0": "Forward(head=0).input", "": "Forward.input"},
    )


X = np.array([[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]])  # two leading axes
SEED = np.array([[[1.0, 0.0, -1.0]], [[0.5, 2.0, 0.0]]])


class Swapped:
    """The way back of a pass, with the operands' rows in another order."""

    def adjoint(self, node: Tensor) -> Array:
        return -node.value


def nodes() -> Mapping[str, Any]:
    x = parameter(X)
    return {
        "input": x,
        "output": mul(x, x),
        "mean": np.array([[2.0], [5.0]]),
        "word": ["a", None],
        "large": np.array([[False], [True]]),
        "unused": None,
    }


def values(record: Record) -> dict[str, Any]:
    shown = (
        (declared.attribute, getattr(record, declared.attribute)) for declared in record.fields
    )
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in shown
    }


def test_rows_are_counted_over_the_leading_axes() -> None:
    first, second = forward_rows(Forward, nodes(), head=7)
    assert values(first) == {
        "head": 7,
        "position": 0,
        "word": "a",
        "input": [1.0, 2.0, 3.0],
        "output": [1.0, 4.0, 9.0],
        "mean": 2.0,
        "large": False,
    }
    assert values(second)["output"] == [16.0, 25.0, 36.0]
    assert (values(second)["position"], values(second)["word"]) == (1, None)
    assert type(first.mean) is float
    assert type(first.large) is bool


def test_a_key_that_has_a_node_is_read_and_not_counted() -> None:
    placed = {**nodes(), "position": np.array([[5], [3]])}
    assert [row.position for row in forward_rows(Forward, placed, head=7)] == [5, 3]


def test_a_single_row_is_picked_by_its_index() -> None:
    picked = forward_row(Forward, nodes(), (1, 0), head=7, position=9, word=None)
    assert values(picked) == {
        "head": 7,
        "position": 9,
        "word": None,
        "input": [4.0, 5.0, 6.0],
        "output": [16.0, 25.0, 36.0],
        "mean": 5.0,
        "large": True,
    }


def test_gradients_are_the_adjoints_of_the_nodes_that_they_name() -> None:
    read = nodes()
    backward = trace_backward(read["output"], SEED)
    first, second = backward_rows(Backward, read, backward)
    assert values(first) == {
        "position": 0,
        "input": [1.0, 2.0, 3.0],
        "upstream": [1.0, 0.0, -1.0],
        "input_gradient": [2.0, 0.0, -6.0],
    }
    assert values(second)["input_gradient"] == [4.0, 20.0, 0.0]
    picked = backward_row(Backward, read, backward, (1, 0), position=1)
    assert values(picked) == values(second)
    part = {**read, "input_gradient": np.full((2, 1, 3), 7.0)}  # a node of the field's own name
    assert [values(row)["input_gradient"] for row in backward_rows(Backward, part, backward)] == [
        [7.0] * 3
    ] * 2
    swapped = backward_row(Backward, read, Swapped(), (1, 0), position=1)
    assert values(swapped)["upstream"] == [-16.0, -25.0, -36.0]


def test_nothing_is_read_of_no_rows() -> None:
    empty = {"input": np.zeros((0, 2, 3)), "output": np.zeros((0, 2, 3)), "mean": np.zeros((0, 2))}
    given: dict[str, Any] = {"word": [], "large": []}
    assert [*forward_rows(Forward, {**empty, **given}, head=0)] == []


@pytest.mark.parametrize(
    ("missing", "given", "message"),
    [
        ("output", {"head": 0}, "Forward.output: expected a node output, found none"),
        ("", {}, r"Forward: expected one key to count rows with, found \['head', 'position'\]"),
        ("", {"head": 0, "position": 0}, r"expected one key to count rows with, found \[\]"),
    ],
)
def test_what_cannot_be_read_is_named(missing: str, given: dict[str, Any], message: str) -> None:
    known = {name: node for name, node in nodes().items() if name != missing}
    with pytest.raises(TypeError, match=message):
        [*forward_rows(Forward, known, **given)]


def test_nodes_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        [*forward_rows(Forward, {**nodes(), "word": ["a", "b", "c"]}, head=0)]


def test_a_gradient_of_several_nodes_has_to_be_given() -> None:
    class Mixed(Record):
        """Two."""

        position: Int = key("where")
        gradient: Row = field(
            "of either", gradient_of={"position": "Forward.input", "": "F.output"}
        )

    read = nodes()
    backward = trace_backward(read["output"], SEED)
    with pytest.raises(TypeError, match=r"expected one node, found \['input', 'output'\]"):
        backward_row(Mixed, read, backward, (0, 0), position=0)
    assert backward_row(Mixed, read, backward, 0, position=0, gradient=SEED[0, 0]).position == 0


def test_a_node_that_is_none_is_none_in_every_row() -> None:
    absent = {**nodes(), "word": None}
    assert [row.word for row in forward_rows(Forward, absent, head=7)] == [None, None]
    assert forward_row(Forward, absent, (0, 0), head=7, position=0).word is None

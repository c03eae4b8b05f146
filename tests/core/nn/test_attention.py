"""Heads and their masks as layers: what they refuse, and that every sequence is computed alone."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.autodiff import constant
from llm_trace.core.autodiff.errors import FullyMaskedRow
from llm_trace.core.errors import CoreError, ShapeMismatch
from llm_trace.core.nn.attention import AttentionHead, MultiHeadAttention, causal, padding
from llm_trace.core.nn.errors import DuplicateName
from llm_trace.core.nn.parameters import NamedParameter, named_parameter

RNG = np.random.default_rng(6)


def weight(name: str, *shape: int) -> NamedParameter:
    return named_parameter(name, RNG.normal(size=shape))


def head(prefix: str = "head", model: int = 5, score: int = 3, value: int = 2) -> AttentionHead:
    return AttentionHead(
        weight(f"{prefix}.query", score, model),
        weight(f"{prefix}.key", score, model),
        weight(f"{prefix}.value", value, model),
    )


def test_masks() -> None:
    assert causal(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert padding([True, False]).tolist() == [[True, False]]
    assert padding(np.array([[True, False], [True, True]])).shape == (2, 1, 2)


def test_a_mask_for_each_sequence_and_both_masks_together() -> None:
    one = head()
    h = constant(RNG.normal(size=(2, 4, 5)))
    valid = np.array([[True, True, True, False], [True, True, True, True]])
    weights = one(h, causal(4) & padding(valid)).weights.value
    assert np.array_equal(weights > 0.0, np.stack([causal(4) & valid[0], causal(4)]))
    alone = one(constant(h.value[0]), causal(4) & padding(valid[0])).weights.value
    assert weights[0].tobytes() == alone.tobytes()


def test_hidden_sources_change_nothing_even_if_they_are_huge() -> None:
    one, valid = head(), [True, True, False]
    h = RNG.normal(size=(3, 5))
    before = one(constant(h), padding(valid)).output.value[:2]
    h[2] = 1e100
    assert before.tobytes() == one(constant(h), padding(valid)).output.value[:2].tobytes()


def test_order_of_sources_changes_no_weight_without_positions() -> None:
    one, h = head(), RNG.normal(size=(4, 5))
    order = [2, 0, 3, 1]
    output, moved = one(constant(h)).output.value, one(constant(h[order])).output.value
    assert np.allclose(output[order], moved, rtol=1e-13)


def test_sizes() -> None:
    heads = (head("one"), head("two", value=4))
    attention = MultiHeadAttention(heads, weight("output", 7, 6))
    forward = attention(constant(RNG.normal(size=(2, 3, 5))))
    assert attention.concatenated_width == 6
    assert forward.concatenated.shape == (2, 3, 6)
    assert forward.output.shape == (2, 3, 7)
    names = [name for name, _ in attention.parameters]
    assert names == "one.query one.key one.value two.query two.key two.value output".split()


def no_matrix(role: str, found: tuple[int, ...]) -> ShapeMismatch:
    expected = "a matrix that is not empty"
    return ShapeMismatch(layer="attention", part=f"{role} weight", expected=expected, found=found)


@pytest.mark.parametrize(
    ("shapes", "error"),
    [
        (
            ((3, 5), (3, 5), (2,)),
            no_matrix("value", (2,)),
        ),
        (((0, 5), (0, 5), (2, 5)), no_matrix("query", (0, 5))),
        (((3, 0), (3, 0), (2, 0)), no_matrix("query", (3, 0))),
        (
            ((3, 5), (3, 4), (2, 5)),
            ShapeMismatch(layer="attention", part="key model width", expected=5, found=4),
        ),
        (
            ((3, 5), (2, 5), (2, 5)),
            ShapeMismatch(layer="attention", part="key width", expected=3, found=2),
        ),
    ],
)
def test_weights_that_do_not_fit(shapes: Any, error: CoreError) -> None:
    names = ("query", "key", "value")
    with pytest.raises(type(error)) as raised:
        AttentionHead(*(weight(name, *shape) for name, shape in zip(names, shapes, strict=True)))
    assert raised.value == error


def test_heads_that_do_not_fit() -> None:
    output = weight("output", 5, 2)
    with pytest.raises(ShapeMismatch):
        MultiHeadAttention((), output)
    with pytest.raises(ShapeMismatch, match="head 1 model width: expected 5, found 4"):
        MultiHeadAttention((head("one"), head("two", model=4)), output)
    with pytest.raises(ShapeMismatch, match="output weight columns: expected 4, found 2"):
        MultiHeadAttention((head("one"), head("two")), output)
    with pytest.raises(DuplicateName):
        MultiHeadAttention((head("one"), head("one")), weight("output", 5, 4))


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(ShapeMismatch):
        head()(constant(np.ones(5)))
    with pytest.raises(ShapeMismatch):
        head()(constant(np.ones((3, 4))))
    with pytest.raises(ShapeMismatch):
        head()(constant(np.ones((3, 5))), causal(4))
    with pytest.raises(FullyMaskedRow):
        head()(constant(np.ones((3, 5))), padding([False, False, False]))

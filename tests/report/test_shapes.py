"""Shapes as texts spell them."""

import pytest

from llm_trace.report.shapes import spelled_extents

SPELLED = {"scalar": (), "[]": (), "4": (4,), "2x3": (2, 3), "[2, 3]": (2, 3), "2,0": (2, 0)}


@pytest.mark.parametrize("text", SPELLED)
def test_a_shape_has_its_extents(text: str) -> None:
    assert spelled_extents(text) == SPELLED[text]


@pytest.mark.parametrize(
    "text", ["", "none", "2x", "[2x3", "2x3]", "-1", "1.5", "x".join(["1"] * 33), "9" * 19]
)
def test_what_is_no_shape_has_none(text: str) -> None:
    assert spelled_extents(text) is None

"""Experiments that answer yes or no."""

import numpy as np
import pytest

from llm_trace.traces._probes import equal, same_bits


@pytest.mark.parametrize(
    ("left", "right", "values", "bits"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, True),
        ([1.0, 2.0], [1.0, 2.5], False, False),
        ([0.0], [-0.0], True, False),
        ([[1.0, 2.0]], [1.0, 2.0], False, False),
        ([np.nan], [np.nan], False, True),
        ([], [], True, True),
    ],
)
def test_values_and_bits_are_two_questions(
    left: list[float], right: list[float], values: bool, bits: bool
) -> None:
    one, other = np.array(left), np.array(right)
    assert (equal(one, other), same_bits(one, other)) == (values, bits)
    assert (equal(other, one), same_bits(other, one)) == (values, bits)

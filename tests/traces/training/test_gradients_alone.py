"""Gradients that are clipped alone, without those of the example."""

import pytest

from llm_trace import LlmTraceError
from llm_trace.api import run


@pytest.mark.parametrize(("given", "clipped"), [([3.0, 4.0], [1.2, 1.6]), ([0.5, 0.5], [0.5, 0.5])])
def test_a_vector_alone(given: list[float], clipped: list[float]) -> None:
    found = run("gradient-clipping", vector=given, thresholds=[2.0])
    assert found["FIXTURE", 0].arrays == 1
    assert found["CLIPPED", 0].values.tolist() == pytest.approx(clipped, abs=1e-15)
    assert found["CLIPPED", 0].parameter == "vector"


def test_gradients_that_are_given_have_no_others_beside_them() -> None:
    found = run("gradient-clipping", head_bias=[3.0], input_weight=[[4.0]])
    assert [row.parameter for row in found["GRADIENT"]] == ["input_weight", "head_bias"]
    assert found["NORM", 0].norm == 5.0
    with pytest.raises(LlmTraceError, match="vector: expected a gradient in one field at least"):
        run("gradient-clipping", vector="none")

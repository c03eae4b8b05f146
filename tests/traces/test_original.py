"""`--style rust` and `--report` print what the originals print, whatever the fixture."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from llm_trace.core.numerics import elementary
from llm_trace.errors import LlmTraceError
from llm_trace.traces import entries

from .original import changed, linear_layers, model_ops, qkv, swiglu

ENTRIES = entries()
CHAPTERS = {
    "model-ops": (model_ops, changed.model_ops),
    "linear-layers": (linear_layers, changed.linear_layers),
    "swiglu": (swiglu, changed.swiglu),
    "qkv": (qkv, changed.qkv),
}
FIXTURES = 500  # a chapter; the reports of every second one, as they are the same numbers
PARTS = 5


def printed(command: str, form: str, **fields: Any) -> list[str]:
    entry = ENTRIES[command]
    return "".join(entry.pieces(form, entry.load().fixture(**fields))).splitlines()


def line_of(lines: list[str], start: str) -> str:
    (line,) = (line for line in lines if line.startswith(start))
    return line


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("command", CHAPTERS)
def test_prints_the_original_on_changed_fixtures(command: str, part: int) -> None:
    chapter, change = CHAPTERS[command]
    kind = ENTRIES[command].load().fixture
    for number in range(part, FIXTURES, PARTS):
        fields = change(random.Random(number))
        fixture = kind(**fields)
        found = printed(command, "rust", **fields)
        assert first_difference(found, with_glibc(chapter.trace, fixture)) is None, number
        if number % 2:
            found = printed(command, "report", **fields)
            assert first_difference(found, with_glibc(chapter.report, fixture)) is None, number


def with_glibc(lines: Callable[[Any], list[str]], fixture: Any) -> list[str]:
    """The oracle's lines with the exp and log1p that the original called."""

    def told() -> Iterator[list[str]]:
        yield lines(fixture)

    return next(elementary.with_glibc(told()))


def first_difference(found: list[str], expected: list[str]) -> tuple[str, str] | None:
    if len(found) != len(expected):
        return f"{len(found)} lines", f"{len(expected)} lines"
    pairs = zip(found, expected, strict=True)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


NOTHING = np.zeros((1, 0, 2))
LARGE_BIAS = {
    "weight": np.array([[1.0, 0.0, 0.7], [2.0, 0.5, 0.7]]),
    "bias": np.array([0.0, 0.0, 1e6]),
}


def cell(form: str) -> str:
    lines = printed("linear-layers", form, **LARGE_BIAS)
    return line_of(lines, "CELL position=0 coordinate=0,0 output-feature=2")


def test_the_original_takes_the_bias_off_again() -> None:
    assert " weighted-sum=2.099999999977 bias=1000000.000000000000 " in cell("rust")
    assert " weighted-sum=2.100000000000 bias=1000000.000000000000 " in cell("trace")


def test_without_a_bias_nothing_is_taken_off() -> None:
    for form in ("rust", "trace"):
        lines = printed("linear-layers", form, bias=None)
        assert " weighted-sum=5.000000000000 bias=none result=5.000000000000" in lines[6]


def test_what_the_original_takes_off_may_leave_the_finite_range() -> None:
    fields = {"weight": np.full((2, 3), 8e307), "bias": np.full(3, -1.7e308)}
    fields |= {"input": np.array([[[-0.05, 0.0], [0.0, 0.0]]]), "upstream": np.zeros((1, 2, 3))}
    lines = printed("linear-layers", "rust", **fields)
    assert lines == linear_layers.trace(ENTRIES["linear-layers"].load().fixture(**fields))


def target(form: str, **fields: Any) -> str:
    return line_of(printed("model-ops", form, **fields), "TARGET position=0")


def test_a_zero_is_unexpected_to_the_original() -> None:
    fields = {"embeddings": np.array([[2.0, 2.0], [40.0, 0.0], [-1.0, 1.0]])}
    ending = "competitor-sign=positive row-sum=0.000000000000"
    assert target("rust", **fields).endswith(f" correct-sign=unexpected {ending}")
    assert target("trace", **fields).endswith(f" correct-sign=zero {ending}")
    fields = {"weights": np.array([[400.0, -400.0], [-400.0, 400.0]])}
    ending = "row-sum=0.000000000000"
    assert target("rust", **fields).endswith(
        f" correct-sign=unexpected competitor-sign=unexpected {ending}"
    )
    assert target("trace", **fields).endswith(f" correct-sign=zero competitor-sign=zero {ending}")


@pytest.mark.parametrize("tokens", [0, 1])
def test_fewer_than_two_tokens_mix_features_to_the_original(tokens: int) -> None:
    fields = {"input": np.ones((1, tokens, 2)), "upstream": np.ones((1, tokens, 3))}
    for form, answer in (("rust", "feature"), ("trace", "none")):
        assert line_of(printed("linear-layers", form, **fields), "AXES").endswith(
            f" preserved=true mixed-axis={answer}"
        )


def test_the_original_prints_nothing_for_an_empty_list() -> None:
    fields = {"input": NOTHING, "upstream": np.zeros((1, 0, 3))}
    lines = printed("linear-layers", "rust", **fields)
    assert line_of(lines, "INPUT") == "INPUT values="
    assert line_of(lines, "POLICY").endswith(" bias-free-parameters=6 bias-free-output=")
    assert line_of(printed("linear-layers", "trace", **fields), "INPUT") == "INPUT values=none"
    report = printed("linear-layers", "report", **fields)
    assert line_of(report, "input:") == "input: shape=1x0x2 values="
    assert line_of(report, "output:") == "output: shape=1x0x3 values="


def test_a_table_without_width_has_empty_rows() -> None:
    fields = {"embeddings": np.zeros((3, 0)), "weights": np.zeros((0, 2))}
    lines = printed("model-ops", "rust", **fields)
    assert line_of(lines, "FORWARD step=0").endswith(" output-shape=4x0 values=")
    assert line_of(lines, "OCCURRENCE position=0").endswith(" contribution= repeated=yes")
    assert line_of(lines, "EMBEDDING row=0") == (
        "EMBEDDING row=0 positions=none occurrences=0 gradient="
    )
    report = printed("model-ops", "report", **fields)
    assert line_of(report, "embeddings:") == "embeddings: shape=3x0 values="


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1000000000000000.25, "1000000000000000.3"),
        (1e-7, "0.0000001"),
        (1e16, "10000000000000000"),
        (-0.0, "-0"),
    ],
)
def test_plain_numbers_are_those_of_the_original(value: float, text: str) -> None:
    line = line_of(printed("linear-layers", "report", bias=np.full(3, value)), "historical unit:")
    assert line.startswith(f"historical unit: 1*1 + 2*2 + {text} = ")
    if value > 0.0:
        line = line_of(printed("model-ops", "report", log_input=value), "scalar probes:")
        assert f" log({text})->(" in line


@pytest.mark.parametrize("form", ["rust", "report", "trace"])
@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("model-ops", {"weights": np.full((2, 2), 1e308), "embeddings": np.full((3, 2), 1e10)}),
        ("model-ops", {"exp_input": 710.0}),
        ("linear-layers", {"weight": np.full((2, 3), 1e308), "input": np.full((1, 2, 2), 1e10)}),
        ("swiglu", {"gate_weight": np.full((2, 3), 1e200), "up_weight": np.full((2, 3), 1e200)}),
        (
            "qkv",
            {"query_weight": np.full((3, 2), 1e308), "query_upstream": np.full((1, 2, 2), 9.0)},
        ),
        ("qkv", {"gradcheck_step": 1e-300}),
    ],
)
def test_what_the_original_refuses_is_refused_in_one_line(
    command: str, fields: dict[str, Any], form: str
) -> None:
    with pytest.raises(LlmTraceError) as caught:
        printed(command, form, **fields)
    assert "\n" not in str(caught.value)

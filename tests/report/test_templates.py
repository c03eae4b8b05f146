"""Templates of an original's texts: facts by path, loops, choices, and how a fact is spelled."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from llm_trace.core.autodiff import constant
from llm_trace.report.records import Record, field, key
from llm_trace.report.style import BARS, RUST, ZERO, Style
from llm_trace.report.templates import TemplateError, rendered
from llm_trace.report.values import Int, Word


class Sizes(Record):
    """One record of its kind."""

    width: Int = field("how wide")


class Stage(Record):
    """One of several."""

    name: Word = key("what tells it apart")
    count: Int = field("how many")


class Pair(NamedTuple):
    left: float
    right: int


def text(template: str, style: Style = RUST, **facts: Any) -> str:
    return "".join(rendered(template, facts, style))


STAGES = [Stage(name="one", count=3), Stage(name="other-1", count=4)]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{Sizes.width}", "7\n"),
        ("{Stage.one.count},{Stage.other-1.count}", "3,4\n"),
        ("{Stage.0.count},{Stage.1.name}", "3,other-1\n"),
        ("{Stage.*.count}", "3,4\n"),
        ("{pair.right} {map.a.1}", "2 6\n"),
        ("a\\\n b\\\n\nc", "a b\nc\n"),
        ("%for stage in Stage\n{stage.count};\\\n%end\n", "3;4;"),
        ("%for at, item in list\n{at}{item}\n%end", "05\n16\n"),
        ("%for name, value in map\n{name}={value}\n%end", "a=5,6\n"),
        ("%for row in rows\n%for item in row\n{item}\\\n%end\n;\\\n%end", "12;3;"),
        ("%if none\nsome\n%else\nnone\n%end\nmore", "none\nmore\n"),
        ("%if list\nsome\n%if no\ninner\n%end\n%end", "some\n"),
        ("{no} {yes} {none} {word}", "false true none it\n"),
        ("{no:same/changed} {yes:same/changed}", "changed same\n"),
        ("{word:is it} {word:is that} {word:is that yes/no}", "true false no\n"),
        ("{flags:all} {flags:all yes/no} {flags}", "false no true,false\n"),
        ("{list:x} {list} {list:spaced} {empty:x}[{empty}]", "5x6 5,6 5, 6 scalar[]\n"),
        (
            "{Stage.*.name:bars} {pairs:lists} {pairs:lists spaced}",
            "one | other-1 [1,2],[3] [1, 2], [3]\n",
        ),
        ("{Sizes.0}; {Stage.one}", "SIZES width=7; STAGE name=one count=3\n"),
        ("{pair.left:2} {pair.left:3e} {pair.left:shortest}", "-0.50 -5.000e-1 -0.5\n"),
        ("{pair.right:positional} {big:positional}", "2 2\n"),
    ],
)
def test_facts_are_found_and_spelled(template: str, expected: str) -> None:
    facts: dict[str, Any] = {
        "Sizes": [Sizes(width=7)],
        "Stage": STAGES,
        "pair": Pair(-0.5, 2),
        "list": (5, 6),
        "map": {"a": [5, 6]},
        "pairs": [(1, 2), (3,)],
        "rows": [[1, 2], [3]],
        "arrays": [np.array([1.0, 2.0]), np.array([3.0])],
        "big": 2.0,
        "none": None,
        "empty": (),
        "no": False,
        "yes": np.True_,
        "word": "it",
        "flags": [True, False],
    }
    assert text(template, **facts) == expected


SIGNED = np.array([[-0.0, -1e-9], [0.25, -2.0]])


@pytest.mark.parametrize(
    ("spelling", "style", "expected"),
    [
        ("", BARS, "-0.000000,-0.000000,0.250000,-2.000000"),
        ("", BARS._replace(zero=ZERO), "0.000000,-0.000000,0.250000,-2.000000"),
        (":raw", BARS._replace(zero=ZERO), "-0.000000,-0.000000,0.250000,-2.000000"),
        (":zero", BARS, "0.000000,-0.000000,0.250000,-2.000000"),
        (":flat", BARS, "0.000000,0.000000,0.250000,-2.000000"),
        (":1", RUST, "-0.0,-0.0,0.2,-2.0"),
        (":1 flat spaced", RUST, "0.0, 0.0, 0.2, -2.0"),
        (":lists 1", RUST, "[-0.0,-0.0],[0.2,-2.0]"),
        (":shortest spaced", RUST, "-0.0, -1e-9, 0.25, -2.0"),
        (":2e", RUST, "-0.00e0,-1.00e-9,2.50e-1,-2.00e0"),
    ],
)
def test_lists_of_reals(spelling: str, style: Style, expected: str) -> None:
    for values in (SIGNED, constant(SIGNED)):
        assert text(f"{{x{spelling}}}", style, x=values) == f"{expected}\n"


def test_a_single_real_keeps_its_sign() -> None:
    style = BARS._replace(zero=ZERO)
    for value in (-0.0, np.float64(-0.0), np.array(-0.0), constant(-0.0)):
        assert text("{x} {x:flat}", style, x=value) == "-0.000000 0.000000\n"


def test_a_function_is_called_once_and_only_if_it_is_asked_for() -> None:
    calls = []

    def fact() -> bool:
        calls.append(1)
        return True

    assert text("%for at in range\n{at} {fact}\n%end\n{fact}", fact=fact, range=[1, 2]) == (
        "1 true\n2 true\ntrue\n"
    )
    assert len(calls) == 1
    text("nothing", fact=fact)
    assert len(calls) == 1


def test_nothing_comes_out_before_every_fact_is_there() -> None:
    def fails() -> None:
        raise ValueError("refused")

    pieces = rendered("one\n{fact}", {"fact": fails}, RUST)
    with pytest.raises(ValueError, match="refused"):
        next(pieces)


@pytest.mark.parametrize(
    "template",
    [
        "{x.y",
        "x}",
        "{a b}",
        "{}",
        "%for x in y",
        "%end",
        "%for x y\n%end",
        "%if x\n%else\n%else\n%end",
        "%while x\n%end",
        "{missing}",
        "{Stage.count}",
        "{Stage.*.missing}",
        "{empty.count}",
    ],
)
def test_what_is_wrong_is_no_text(template: str) -> None:
    with pytest.raises(TemplateError):
        text(template, Stage=STAGES, empty=[], x=1, y=[])


def test_a_list_of_lists_has_brackets_around_each() -> None:
    assert text("[{x:lists}]", RUST, x=[(4, 4), (3,)]) == "[[4,4],[3]]\n"

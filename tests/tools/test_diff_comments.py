"""What stands in a comment whatever the names, notes and errors: never nothing but the verdict."""

import html
import json

from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.lines import LineComparison
from llm_trace.tools.diff.markdown import (
    bounded_notes,
    comment,
    document,
    failures,
    markdown,
)
from llm_trace.tools.diff.notes import Note
from llm_trace.tools.diff.rules import Rules
from llm_trace.tools.diff.sources import Source

from .diffing import LIMIT, framed, source


def commented(old: str, new: str, rules: Rules | None = None, name: str = "new") -> str:
    found = "".join(comment(Comparison(source(old, "old"), source(new, name), rules)))
    assert len(found) <= LIMIT
    assert "Left out" not in found
    return html.unescape(found)


def test_a_pair_of_which_one_is_longer_does_not_look_equal() -> None:
    found = commented(f"K a={'x' * 70_000}\n", f"K a={'x' * 70_001}\n")
    assert "from character 70001 on, 1000 of them:\n  '' -> x\n" in found


def test_a_long_name_of_a_trace_leaves_room_for_the_rest() -> None:
    name = "n" * 70_000
    found = commented(framed("K a=1", name=f"{name}-v1"), framed("K a=2", name=f"{name}-v2"))
    assert (
        "trace: 70003 -> 70003 characters, too long to be shown here; "
        "from character 70003 on, 1000 of them:   1 -> 2\n"
    ) in found
    assert "\n  1 -> 2  changed: difference 1, relative 0.5\n" in found
    found = commented(framed("K a=1", name=name), framed("K a=2", name=f"{name}n"))
    assert "from character 70001 on, 1000 of them:   '' -> n\n" in found


def test_a_moved_trace_with_a_long_name_is_named() -> None:
    one, other = framed("K a=1", name="n" * 70_000), framed("L a=1", name="m")
    found = commented(one + other, other + one)
    assert f"\nmoved trace {'n' * 188}... (" in found


def test_many_traces_with_notes_leave_room_for_the_rest() -> None:
    old = "".join(framed("K a=1", name=f"{'n' * 60}-{place}-v1") for place in range(800))
    found = commented(old, old.replace("-v1", "-v2").replace("a=1", "a=2", 1))
    shown = found.count("\ntrace: ")
    assert shown > 100
    assert f"\n  and {800 - shown} lines more, left out here\n" in found
    assert "\n  1 -> 2  changed: difference 1, relative 0.5\n" in found


def test_a_long_rule_and_a_long_name_of_a_file_leave_room_for_the_rest() -> None:
    tolerances = [f"K.{'k' * 100}{place}=atol:1" for place in range(700)]
    rules = Rules.given(None, None, None, tolerances)
    found = commented("K a=1\n", "K a=2\n", rules, "n" * 70_000)
    assert "\n  1 -> 2  changed: difference 1, relative 0.5\n" in found


def test_short_notes_are_whole() -> None:
    notes = [Note("trace", "a", "b", (1, 2)), Note("moved trace", "a", "a", (1, 2))]
    assert bounded_notes(notes) == ["trace: a -> b  line 1 -> 2", "moved trace a  line 1 -> 2"]


def test_many_errors_are_bounded() -> None:
    errors = [f"golden/{place}_{'<' * 500}: expected this, found that" for place in range(700)]
    changed = document(Comparison(source("K a=1\n", "old"), source("K a=2\n", "new")))
    found = "".join(markdown([failures(errors), changed], "x"))
    assert len(found) <= LIMIT
    assert "\ngolden/0_&lt;" in found
    shown = found.count("\ngolden/")
    assert f"\n  and {700 - shown} lines more, left out here\n" in found
    assert "\n  1 -&gt; 2  changed: difference 1, relative 0.5\n" in found
    assert "Left out" not in found


def test_lines_with_other_ends_say_so_in_json() -> None:
    found = LineComparison(Source("old", ["a"], "\r\n", True), Source("new", ["a"], "\n", True))
    said = json.loads("".join(found.json()))
    assert (said["different"], said["lines"]) == (True, [])
    assert said["notes"] == [
        {
            "what": "line ends",
            "old": "CRLF",
            "new": "LF",
            "old-line": None,
            "new-line": None,
            "significant": True,
        }
    ]
    assert found.document().notes == ["line ends: CRLF -> LF"]

"""What a reader is shown, as text, as a comment, and as JSON."""

import html
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.escaping import distinct
from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.json import json as json_pieces
from llm_trace.tools.diff.markdown import comment, document, markdown
from llm_trace.tools.diff.rules import Rules
from llm_trace.tools.diff.text import coloured, text

from .diffing import LIMIT, framed, report, source

OLD = framed(
    "FIXTURE name=mine width=2",
    "ROW row=0 values=1.000000,nan",
    "ROW row=1 values=0.500000,0.250000",
    "ROW row=2 values=-0.000000,1.000000",
    "WORD at=0 of=gate",
)
NEW = framed(
    "FIXTURE width=2 name=mine",
    "ROW row=9 values=7.000000",
    "ROW row=1 values=0.500001,0.750000",
    "ROW row=2 values=0.000000,1.000000,2.000000",
    "WORD at=0 of=g\u0430te more=yes",
    name="mine-v2",
)


def compared(old: str = OLD, new: str = NEW, **options: Any) -> Comparison:
    rules = Rules.given(options.pop("atol", None), None, None, options.pop("tolerances", ()))
    return Comparison(source(old, "old"), source(new, "new"), rules)


def test_the_whole_text() -> None:
    assert report(OLD, NEW) == [
        "--- old",
        "+++ new",
        "rule: exact text",
        "trace: mine-v1 -> mine-v2  line 1",
        "FIXTURE  line 2: fields in another order",
        "  name width -> width name",
        "ROW[row=0]  line 3: removed",
        "  - ROW row=0 values=1.000000,nan",
        "ROW[row=9]  line 3: added",
        "  + ROW row=9 values=7.000000",
        "ROW[row=1].values  line 4: 2 of 2 numbers changed (1 only in the last digit)",
        "  [0]  0.500000 -> 0.500001  changed: last printed digit, difference 0.000001, "
        "relative 0.000002",
        "  [1]  0.250000 -> 0.750000  changed: difference 0.5, relative 0.666667, "
        "500000 units of the last digit",
        "ROW[row=2].values  line 5",
        "  2 elements -> 3 elements, of which the first that differs is [0]  -0.000000 -> 0.000000",
        "WORD.of  line 6",
        "  gate -> g\u0430te ('g\\u0430te')  changed",
        "WORD.more  line 6: field added",
        "  yes",
        "worst: ROW[row=1].values[1]  0.250000 -> 0.750000  changed: difference 0.5, "
        "relative 0.666667, 500000 units of the last digit",
        "records: 4 changed, 1 added, 1 removed",
        "numbers in the records that differ: 4 same, 0 noise, 2 changed (1 only in the last digit)",
        "first: ROW[row=1].values[1]  0.250000 -> 0.750000  changed: difference 0.5, "
        "relative 0.666667, 500000 units of the last digit",
    ]


def test_nothing_is_said_of_what_is_the_same() -> None:
    assert report(OLD, OLD) == []
    assert "".join(comment(compared(OLD, OLD))) == "**llm-trace**: no differences.\n"


def test_moves_and_nans() -> None:
    old = framed("R id=0 v=nan", "R id=1 v=nan", "R id=2 v=1.5")
    new = framed("R id=1 v=nan", "R id=2 v=1.5", "R id=0 v=nan")
    assert report(old, new)[3:] == [
        "R[id=0]  line 2 -> 4: moved",
        "records: 2 same, 1 moved",
        "nan on both sides: 2",
    ]


def test_much_noise_is_counted_after_the_first() -> None:
    old = framed(*(f"R id={index} v=1.5" for index in range(20)))
    lines = report(old, old.replace("1.5", "1.6"), atol="0.1")
    assert lines[2] == "rule: atol 0.1, or another spelling or sign of zero"
    assert sum(line.startswith("R[") for line in lines) == 8
    assert "and 12 more records with nothing but noise" in lines
    assert "records: 20 noise" in lines
    assert lines[-3] == (
        "worst: R[id=0].v  1.5 -> 1.6  noise: within atol 0.1, difference 0.1, relative 0.0625, "
        "1 unit of the last digit"
    )


def test_a_long_list_is_not_shown_whole() -> None:
    old = framed(f"R v={','.join(['1.5'] * 100)}")
    lines = report(old, old.replace("1.5", "2.5"))
    assert lines[3] == "R.v  line 2: 100 of 100 numbers changed"
    assert lines[12] == "  and 92 more"


def test_a_pair_is_never_cut() -> None:
    word = "w" * 100_000
    lines = report(framed(f"R v={word}a"), framed(f"R v={word}b"))
    assert f"  {word}a -> {word}b  changed" in lines


def test_a_line_of_one_side_is() -> None:
    lines = report(framed(), framed(f"R v={'w' * 1000}"))
    assert lines[4] == f"  + R v={'w' * 196}... (1004 characters)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gate", "g\u0430te"),  # a Cyrillic letter
        ("gate", "gate\u200b"),
        ("caf\u00e9", "cafe\u0301"),
        ("a\u202eb", "a\u202db"),
        ("", "''"),
        ("\u00a0", "\u2007"),
    ],
)
def test_different_texts_look_different(old: str, new: str) -> None:
    assert distinct(old) != distinct(new)
    assert ascii(distinct(old)) != distinct(old) or distinct(old).isascii()
    lines = report(framed(f"R v={old}"), framed(f"R v={new}"))
    shown = next(line for line in lines if " -> " in line).removesuffix("  changed").strip()
    one, other = shown.split(" -> ")
    assert one.encode("ascii", "ignore") != other.encode("ascii", "ignore")


ODD = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=" "), max_size=12
)


@settings(deadline=None)
@given(ODD, ODD)
def test_no_difference_is_shown_as_two_equal_texts(old: str, new: str) -> None:
    if old == new or '"' in old + new:
        return
    lines = report(framed(f"R v={old}"), framed(f"R v={new}"))
    pairs = [line.strip().split("  ")[-1] for line in lines if " -> " in line]
    assert lines
    for pair in pairs:
        one, _, other = pair.partition(" -> ")
        assert one != other.removesuffix("  changed")


def test_colours_are_only_added() -> None:
    bare = "".join(text(compared()))
    painted = "".join(text(compared(), coloured))
    assert painted != bare
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == bare
    assert "\x1b[31m0.250000\x1b[m -> \x1b[32m0.750000\x1b[m  \x1b[1;31mchanged\x1b[m" in painted


# Comments


def test_the_whole_comment() -> None:
    old = framed("R id=0 v=1.5", "R id=1 v=2.5", "R id=2 v=3.5")
    new = old.replace("2.5", "2.6").replace("3.5", "3.8")
    assert "".join(comment(compared(old, new))) == (
        "**llm-trace**: records: 2 changed, 1 the same.\n"
        "\n"
        "<pre>\n"
        "--- old\n"
        "+++ new\n"
        "rule: exact text\n"
        "R[id=1].v  line 3\n"
        "  2.5 -&gt; 2.6  changed: difference 0.1, relative 0.0384615, 1 unit of the last digit\n"
        "worst: R[id=2].v  3.5 -&gt; 3.8  changed: difference 0.3, relative 0.0789474, "
        "3 units of the last digit\n"
        "records: 1 same, 2 changed\n"
        "numbers in the records that differ: 2 same, 0 noise, 2 changed\n"
        "</pre>\n"
        "<details><summary>The other differences</summary>\n"
        "\n"
        "<pre>\n"
        "R[id=2].v  line 4\n"
        "  3.5 -&gt; 3.8  changed: difference 0.3, relative 0.0789474, "
        "3 units of the last digit\n"
        "</pre>\n"
        "</details>\n"
    )


def test_what_others_wrote_is_no_markup() -> None:
    evil = "</pre><script>`|&amp;@x*_"
    found = "".join(comment(compared(framed(), framed(f"R v={evil}"))))
    assert evil not in found
    for mark in ("<script", "`", "|"):
        assert mark not in found
    assert evil in html.unescape(found)


def body(found: str) -> str:
    return html.unescape(re.sub(r"</?(pre|details|summary)>", "", found))


def test_a_comment_is_bounded_and_says_what_is_left_out() -> None:
    old = framed(*(f"R id={index} v={index}.25" for index in range(5_000)))
    found = "".join(comment(compared(old, old.replace(".25", ".75"))))
    assert LIMIT - 2_000 < len(found) <= LIMIT
    shown = found.count("  changed: ") - 1  # the worst is shown again
    left = re.search(
        r"^Left out, as a comment holds no more: (\d+) records with differences\.$", found, re.M
    )
    assert left is not None
    assert shown + int(left[1]) == 5_000
    assert "**llm-trace**: records: 5000 changed, 0 the same." in found
    assert found.index("R[id=0].v") < found.index("<details>")


def test_the_first_and_the_worst_pair_are_whole() -> None:
    first, worst = "1." + "1" * 9_000, "1." + "2" * 9_000
    old = framed(
        f"R id=0 v={first}5", *(f"R id={i} v=1.25" for i in range(1, 3000)), f"R id=-1 v={worst}"
    )
    new = old.replace(f"{first}5", f"{first}7").replace(worst, f"9{worst}").replace("1.25", "1.75")
    found = "".join(comment(compared(old, new)))
    assert len(found) <= LIMIT
    assert f"{first}5 -&gt; {first}7" in found
    assert f"{worst} -&gt; 9{worst}" in found
    assert "Left out" in found


def test_a_worst_pair_without_room_is_named() -> None:
    worst = "1." + "2" * 40_000
    old = framed("R id=0 v=1.25", f"R id=1 v={worst}")
    found = "".join(comment(compared(old, old.replace(worst, f"9{worst}").replace("1.25", "1.75"))))
    assert len(found) <= LIMIT
    assert "  1.25 -&gt; 1.75  changed" in found
    assert re.search(r"^worst: \d+ characters, too long to be shown here$", found, re.M)


def test_a_pair_that_no_comment_holds_is_shown_from_where_it_differs() -> None:
    word = "w" * 50_000
    found = "".join(comment(compared(framed(f"R v={word}axyz"), framed(f"R v={word}bxyz"))))
    assert len(found) <= LIMIT
    assert "R: 50004 -> 50004 characters, too long to be shown here;" in body(found)
    assert "from character 50001 on, 1000 of them:" in found
    assert "  axyz -> bxyz" in body(found)


@settings(deadline=None, max_examples=30)
@given(st.randoms(use_true_random=False))
def test_no_comment_is_too_long(rng: random.Random) -> None:
    def value() -> str:
        return rng.choice("&<`|a1") * rng.choice([1, 10, 1_000, 20_000])

    sides = [
        framed(*(f"R id={i} v={value()} w={value()}" for i in range(rng.choice([1, 5, 30]))))
        for _ in "on"
    ]
    documents = [document(compared(*sides)) for _ in range(rng.choice([1, 3]))]
    assert len("".join(markdown(documents, "x"))) <= LIMIT


# JSON


def loaded(comparison: Comparison) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("".join(json_pieces(comparison)))
    return found


def test_the_json_has_everything() -> None:
    found = loaded(compared(tolerances=["ROW.values=rtol:1e-9"]))
    assert found["rule"] == "exact text"
    assert found["tolerances"] == {"ROW.values": "rtol 1e-9"}
    assert found["different"] is True
    assert found["notes"] == [
        {
            "what": "trace",
            "old": "mine-v1",
            "new": "mine-v2",
            "old-line": 1,
            "new-line": 1,
            "significant": True,
        }
    ]
    records = {record["path"]: record for record in found["records"]}
    assert records["FIXTURE"]["new-order"] == ["width", "name"]
    assert records["ROW[row=0]"]["old-text"] == "ROW row=0 values=1.000000,nan"
    assert records["ROW[row=9]"]["new-line"] == 3
    (field,) = records["ROW[row=1]"]["fields"]
    assert field["rule"] == "rtol 1e-9"
    assert field["elements"] == [
        {
            "index": [0],
            "old": "0.500000",
            "new": "0.500001",
            "verdict": "changed",
            "reason": "last printed digit",
            "difference": "0.000001",
            "relative": "0.00000200000",
            "units-of-last-digit": 1,
            "ulps": 9007199255,
        },
        {
            "index": [1],
            "old": "0.250000",
            "new": "0.750000",
            "verdict": "changed",
            "reason": "",
            "difference": "0.500000",
            "relative": "0.666667",
            "units-of-last-digit": 500000,
            "ulps": 6755399441055744,
        },
    ]
    (field,) = records["ROW[row=2]"]["fields"]
    assert field["lengths"] == [2, 3]
    assert field["first"]["new"] == "0.000000"
    assert records["WORD"]["fields"][1] == {"key": "more", "old": None, "new": "yes"}
    assert found["summary"]["records"]["changed"] == 4
    assert found["summary"]["worst"]["path"] == "ROW[row=1].values"
    assert found["summary"]["worst"]["index"] == [1]


def test_the_json_has_every_element() -> None:
    old = framed(f"R v={','.join(['1.5'] * 1000)}")
    (record,) = loaded(compared(old, old.replace("1.5", "2.5")))["records"]
    assert [element["index"] for element in record["fields"][0]["elements"]] == [
        [place] for place in range(1000)
    ]


def test_the_json_of_files_that_are_the_same() -> None:
    found = loaded(compared(OLD, OLD))
    assert found["records"] == []
    assert found["different"] is False
    assert found["summary"]["records"]["same"] == 5
    assert found["summary"]["nan-on-both-sides"] == 1


@settings(deadline=None)
@given(ODD, ODD)
def test_json_is_ascii_and_reads_back(old: str, new: str) -> None:
    if '"' in old + new:
        return
    pieces = "".join(json_pieces(compared(framed(f"R v={old}"), framed(f"R v={new}"))))
    assert pieces.isascii()
    assert json.loads(pieces)["different"] == (old != new)

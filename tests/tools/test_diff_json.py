"""JSON Lines beside each other, and beside text."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.report.events import TextEvents
from llm_trace.report.lines import TraceError
from llm_trace.report.parsing import json_lines as parsed_lines
from llm_trace.report.reading import opened
from llm_trace.report.records import Record, field, key
from llm_trace.report.values import Text, Word, Words
from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.json import json as json_pieces
from llm_trace.traces import schema

from .diffing import compare, framed, known, report, source


def json_lines(*records: str) -> str:
    frame = '{"record":"TRACE","name":"mine-v1","event":"%s"}'
    return "".join(f"{line}\n" for line in (frame % "begin", *records, frame % "end"))


def test_json_lines_are_compared_by_their_digits() -> None:
    old = json_lines(
        '{"record":"X","v":{"value":[0.1234567890123456,"NaN"],"text":"0.123456,nan"}}'
    )
    comparison, (change,) = compare(old, old.replace("3456,", "3457,"))
    assert [(one.old, one.new) for one in change.fields] == [
        ("0.1234567890123456,NaN", "0.1234567890123457,NaN")
    ]
    assert comparison.tally.numbers == {"same": 1, "noise": 0, "changed": 1}
    _, (change,) = compare(old, old.replace('"0.123456,nan"', '"0.123457,nan"'))
    assert [(one.old, one.new) for one in change.fields] == [("0.123456,nan", "0.123457,nan")]


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ('"v":{"value":[0.1,"NaN"],"text":"0.100000,nan"}', "v=0.100000,nan"),
        ('"v":[2,3]', "v=2x3"),
        ('"v":[2,3]', "v=2,3"),
        ('"v":[3]', "v=3"),
        ('"v":[[2,3],[]]', "v=2x3,scalar"),
        ('"v":[]', "v=none"),
        ('"v":[]', "v=scalar"),
        ('"v":null', "v=none"),
        ('"v":true', "v=true"),
        ('"v":true', "v=yes"),
        ('"v":false', "v=fail"),
        ('"v":-7', "v=-7"),
        ('"v":"a.b"', "v=a.b"),
        ('"v":"a b"', 'v="a b"'),
        ('"v":["a","b"]', "v=a,b"),
        ('"v":"caf\\u00e9"', 'v="caf\\u00e9"'),
        ('"v":"none"', 'v="none"'),
        ('"v":"1"', 'v="1"'),
        ('"v":"true"', 'v="true"'),
        ('"v":"1,2"', 'v="1,2"'),
        ('"v":"a"', 'v="a"'),
        ('"v":"NaN"', "v=NaN"),
        ('"v":[]', "v=[]"),
        ('"v":["a"]', "v=a"),
    ],
)
def test_json_beside_text_is_the_same_where_it_means_the_same(json: str, text: str) -> None:
    for old, new in ((json_lines(f'{{"record":"X",{json}}}'), framed(f"X {text}")),) * 2:
        for one, other in ((old, new), (new, old)):
            comparison, changes = compare(one, other)
            assert not changes
            assert not comparison.different


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ('"v":[2,3]', "v=2x4"),
        ('"v":[2,3]', "v=23"),
        ('"v":true', "v=no"),
        ('"v":true', "v=1"),
        ('"v":"yes"', "v=pass"),
        ('"v":null', "v=0"),
        ('"v":null', 'v="none"'),
        ('"v":"none"', "v=none"),
        ('"v":"1"', "v=1"),
        ('"v":"1.5"', "v=1.5"),
        ('"v":"true"', "v=true"),
        ('"v":"1,2"', "v=1,2"),
        ('"v":"a,b"', "v=a,b"),
        ('"v":["a","none"]', "v=a,none"),
        ('"v":["1","2"]', "v=1,2"),
        ('"v":1', 'v="1"'),
        ('"v":[1]', "v=[]"),
        ('"v":"a"', 'v="b"'),
        ('"v":{"value":0.1,"text":"0.100000"}', "v=0.1"),
        ('"v":{"other":0.1}', "v=0.1"),
    ],
)
def test_json_beside_text_differs_where_it_means_something_else(json: str, text: str) -> None:
    old, new = json_lines(f'{{"record":"X",{json}}}'), framed(f"X {text}")
    for one, other in ((old, new), (new, old)):
        _, (change,) = compare(one, other)
        (changed,) = change.fields
        assert changed.old != changed.new


def test_json_and_text_align_by_keys_of_any_spelling() -> None:
    old = json_lines(
        *(f'{{"record":"X","s":[{i},2],"w":{str(i == 1).lower()},"v":{i}}}' for i in range(3))
    )
    new = framed(*(f"X s={i}x2 w={'yes' if i == 1 else 'no'} v={i}" for i in (2, 0, 1)))
    _, changes = compare(old, new)
    assert [change.what for change in changes] == ["moved"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "1:2: expected JSON, found nothing"),
        ('{"record":1}', "1:11: expected a kind such as FIXTURE, found '1'"),
        (
            '{"record":"X","a":NaN}',
            "1:19: expected \"NaN\" in quotes, as JSON has no such number, found 'NaN'",
        ),
        ('{"record":"X","a":1,"a":1}', "1:21: expected each key once, found '\"a\"'"),
        (
            f'{{"record":"X","a":{"[" * 100}1{"]" * 100}}}',
            '1:1: expected fewer brackets in brackets, found \'{"record":',
        ),
        ('{"a":' * 100_000, '1:6: expected fewer brackets in brackets, found \'{"a":'),
    ],
)
def test_json_that_is_none(line: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        compare(f"{line}\n", '{"record":"X"}\n')
    assert str(caught.value).startswith(f"old:{message}")


def test_other_spellings_of_the_same_json() -> None:
    old = '{"record":"X","a":"A","b":1}\n'
    for new in (
        '{"record":"X","a":"\\u0041","b":1}\n',
        '{"record": "X", "a": "A", "b": 1}\n',
    ):
        comparison, (change,) = compare(old, new)
        assert change.respelled
        assert comparison.different


def test_huge_json_numbers_are_texts() -> None:
    old = f'{{"record":"X","a":{"9" * 10_000},"b":1e999999999}}\n'
    _, (change,) = compare(old, old.replace("1e9", "2e9"))
    assert [one.key for one in change.fields] == ["b"]
    assert source(old).entry(0).fields["a"] == "9" * 10_000


def test_json_that_is_nested_as_deep_as_may_be() -> None:
    old = f'{{"record":"X","a":{"[" * 99}1{"]" * 99},"b":[{"[]," * 200}[]]}}\n'
    comparison, (change,) = compare(old, old.replace("1", "2"))
    assert [one.key for one in change.fields] == ["a"]
    assert "".join(json_pieces(comparison))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("null", "[null]"),
        ("null", "[]"),
        ("null", '"none"'),
        ("true", '"true"'),
        ('["a,b"]', '["a","b"]'),
        ('["a,b","c"]', '["a","b,c"]'),
        ("1", '"1"'),
        ("1", "[1]"),
        ("[1,2]", '"1,2"'),
        ("[[1],[2]]", '["[1]","[2]"]'),
        ('{"a":1}', '{"a":"1"}'),
        ('[1.5,"2.5"]', "[1.6,2.5]"),  # beside a number that is noise
        ('["a,b","c",1.5]', '["a","b,c",1.6]'),
        ('"1.5"', '"1.6"'),  # words, whatever they look like
        ('"NaN"', "1.5"),
        ("1", '{"value":1,"text":"1"}'),
        ('{"value":[1,2],"text":"1,2"}', '{"value":["1",2],"text":"1,2"}'),
    ],
)
def test_another_type_or_structure_is_a_change_under_any_rule(old: str, new: str) -> None:
    for one, other in ((old, new), (new, old)):
        sides = [f'{{"record":"X","v":{value},"w":1}}\n' for value in (one, other)]
        for tolerance in (None, "1"):
            comparison, (change,) = compare(*sides, atol=tolerance)
            assert change.what == "changed"
            assert [found.key for found in change.fields] == ["v"]
            assert not change.respelled
            (shown,) = [line for line in report(*sides, atol=tolerance) if " -> " in line][:1]
            before, _, after = shown.removesuffix("  changed").rpartition("  ")[2].partition(" -> ")
            assert before != after
            found = json.loads("".join(json_pieces(Comparison(comparison.old, comparison.new))))
            (record,) = found["records"]
            (told,) = record["fields"][0]["elements"] or [record["fields"][0]["first"]]
            assert told["old"] != told["new"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.5", "1.6"),
        ('[1.5,"NaN","a"]', '[1.6,"nan","a"]'),
        ('{"value":[1.5,"inf"],"text":"1.5,inf"}', '{"value":[1.6,"inf"],"text":"1.6,inf"}'),
        ('{"a":[1.5,true,null]}', '{"a":[1.6,true,null]}'),
    ],
)
def test_numbers_of_one_structure_may_be_noise(old: str, new: str) -> None:
    sides = (f'{{"record":"X","v":{value}}}\n' for value in (old, new))
    _, (change,) = compare(*sides, atol="0.2")
    assert change.what == "noise"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from(["", "a", "1", "none", "a,b", "[1]"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("k"), inner)
)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_values_that_differ_in_more_than_numbers_are_never_noise(old: Any, new: Any) -> None:
    def blank(value: Any) -> str:
        return re.sub(r"\b[012]\b(?=([^\"]*\"[^\"]*\")*[^\"]*$)", "0", json.dumps(value))

    sides = [json.dumps({"record": "X", "v": value}) + "\n" for value in (old, new)]
    assert compare(*sides)[0].different == (sides[0] != sides[1])
    comparison, _ = compare(*sides, tolerances=["X.v=atol:9"])
    assert comparison.different == (blank(old) != blank(new))


# Text beside what `parse` makes of it


TEXTS = st.one_of(
    st.sampled_from(
        ["none", '"none"', "1", '"1"', "true", '"true"', "1,2", '"1,2"', "[]", "[1,2]", "[[1],[2]]"]
    ),
    st.sampled_from(
        ["[a,b]", "a,b", '"a b"', '"a"', '""', "2x3", "nan", "-inf", "1.50", "+1", "[[]]"]
    ),
    st.text(st.sampled_from('a1.,[]x-" '), max_size=6).map(json.dumps),
    st.text(st.sampled_from("a1.,[]x-"), max_size=6),
)


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_what_parse_writes_is_the_same(tmp_path_factory: Any, texts: list[str]) -> None:
    line = " ".join(f"k{place}={text}" for place, text in enumerate(texts))
    path = tmp_path_factory.mktemp("parse") / "x"
    path.write_text(f"X {line}\n")
    with opened(str(path)) as lines:
        parsed = "".join(parsed_lines(TextEvents(lines), schema, "x"))
    for old, new in ((path.read_text(), parsed), (parsed, path.read_text())):
        comparison, changes = compare(old, new)
        assert changes == []
        assert not comparison.different


class Say(Record):
    """Words of every kind."""

    id: Word = key("the key")
    word: Word = field("a word")
    words: Words = field("several")
    said: Text = field("a word or a text")


def test_declared_words_may_look_like_anything() -> None:
    old = framed("SAY id=1 word=none words=1,2 said=true", "SAY id=2 word=a words=b said=c")
    new = json_lines(
        '{"record":"SAY","id":"1","word":"none","words":["1","2"],"said":"true"}',
        '{"record":"SAY","id":"2","word":"a","words":["b"],"said":"c"}',
    )
    for one, other in ((old, new), (new, old)):
        assert compare(one, other, classes=known(Say))[1] == []
        _, changes = compare(one, other.replace("none", "null"), classes=known(Say))
        assert [change.path for change in changes] == ["SAY[id=1]"]
        _, changes = compare(one, other)
        assert [[field.key for field in change.fields] for change in changes] == [
            ["id", "word", "words", "said"],
            ["id"],
        ]


def test_quoted_keys_align_with_those_of_json() -> None:
    old = framed('X id="1" v=1.5', 'X id="a b" v=2.5')
    new = json_lines('{"record":"X","id":"a b","v":2.5}', '{"record":"X","id":"1","v":1.5}')
    _, changes = compare(old, new)
    assert [(change.what, change.lines) for change in changes] == [("moved", (2, 3))]


def test_lists_of_words_may_be_keys() -> None:
    old = framed("X ids=a,b v=1.5", "X ids=c v=2.5")
    new = json_lines(
        '{"record":"X","ids":["a b","c"],"v":2.5}', '{"record":"X","ids":["a","b"],"v":1.5}'
    )
    _, changes = compare(old, new)
    assert sorted(change.what for change in changes) == ["added", "removed"]


# Frames


def begin(name: str = '"x"', more: str = "") -> str:
    return f'{{"record":"TRACE","name":{name},"event":"begin"{more}}}\n'


END = '{"record":"TRACE","name":%s,"event":"end"%s}\n'
RECORD = '{"record":"X","a":1}\n'


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        (
            begin(more=',"separator":" ","seed":1') + RECORD,
            begin(more=',"separator":"|","seed":[2]') + RECORD,
            [
                ("separator in the begin of the trace", '" "', '"|"', (1, 1)),
                ("seed in the begin of the trace", "1", "[2]", (1, 1)),
            ],
        ),
        (
            begin(more=',"seed":1') + RECORD,
            begin() + RECORD,
            [("seed in the begin of the trace", "1", None, (1, 1))],
        ),
        (
            begin(more=',"seed":1') + RECORD,
            begin(more=',"seed":"1"') + RECORD,
            [("seed in the begin of the trace", "1", '"1"', (1, 1))],
        ),
        (
            begin("null") + RECORD + END % ("null", ""),
            begin("null") + RECORD + END % ("null", ',"newline":""'),
            [("newline in the end of the trace", None, '""', (3, 3))],
        ),
        (
            begin("null") + RECORD + END % ("null", ""),
            begin("null") + RECORD,
            [("end of the trace", "there", "missing", (3, None))],
        ),
        (
            begin("true") + RECORD,
            begin("false") + RECORD,
            [("name in the begin of the trace", "true", "false", (1, 1))],
        ),
        (
            begin("null") + RECORD,
            RECORD,
            [("frame of the trace", "there", "missing", (1, None))],
        ),
    ],
)
def test_frames_of_json_lines_are_compared(old: str, new: str, notes: list[Any]) -> None:
    comparison, changes = compare(old, new, atol="1")
    assert changes == []
    assert [note[:4] for note in comparison.notes] == notes
    assert comparison.different
    assert compare(old, old)[0].notes == []


def test_a_frame_may_be_spelled_in_another_way() -> None:
    old, new = begin() + RECORD, begin().replace(":", ": ") + RECORD
    comparison, _ = compare(old, new)
    assert [note.what for note in comparison.notes] == ["spelling of the begin of the trace"]
    assert comparison.different
    assert not compare(old, new, atol="1")[0].different

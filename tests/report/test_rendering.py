"""JSON Lines as a trace's text: what is refused, and that nothing is smuggled in."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.lines import Line, TraceError
from llm_trace.report.rendering import text_of
from llm_trace.traces import Entry, entries, schema

from .test_parsing import WORDS
from .tracing import KNOWN, lines_of, parsed, patient, rendered

BEGIN = '{"record":"TRACE","name":null,"event":"begin","separator":" "}\n'
END = '{"record":"TRACE","name":null,"event":"end"}\n'
KNOWN_BEGIN = '{"record":"TRACE","name":"known-v1","event":"begin"}\n'
KNOWN_END = '{"record":"TRACE","name":"known-v1","event":"end"}\n'


def framed(record: str) -> str:
    return f"{BEGIN}{record}\n{END}"


def one_line(error: TraceError) -> None:
    assert re.fullmatch(r"F:[0-9]+:[0-9]+: expected [ -~]+, found [ -~]+", str(error))


def refusal(content: str | bytes) -> str:
    with pytest.raises(TraceError) as refused:
        rendered(content)
    return str(refused.value)


def test_space_between_marks_and_the_order_of_keys_of_the_frame_are_free() -> None:
    text = (
        BEGIN
        + ' { "x" : 1 , "record":"A", "y":[ 1, 2 ] } \n{"event":"end",'
        + END[1:-1].replace(',"event":"end"', "")
    )
    assert rendered(text) == b"A x=1 y=1,2\n"
    assert rendered(framed('{"record":"A","x":"a b"}')) == b'A x="a b"\n'
    assert rendered(framed('{"record":"A","x":"\\u00e9"}')) == "A x=é\n".encode()


def test_json_may_hold_characters_that_no_line_of_text_may() -> None:
    raw = '{"record":"A",\t"x":\t"a\u2028b\x7f\x85"\t}\t'
    assert rendered(framed(raw)) == rb'A x="a\u2028b\u007f\u0085"' + b"\n"
    kept = '{"record":"A","x":{"value":"\u2028\x7f","text":"\\"\\\\u2028\\\\u007F\\""}}'
    assert rendered(framed(kept)) == rb'A x="\u2028\u007F"' + b"\n"
    known = f'{KNOWN_BEGIN}{{"record":"SIZES","note":"\x7f"}}\n{KNOWN_END}'
    assert rb'note="\u007f"' in rendered(known)


def test_lines_have_as_many_fields_as_can_be_read_again() -> None:
    fields = [f'"x{place}":1' for place in range(10_001)]
    assert rendered(framed(f'{{"record":"A",{",".join(fields[:-1])}}}')).endswith(b" x9999=1\n")
    text = f'{{"record":"A",{",".join(fields)}}}'
    column = text.index('"x10000"') + 1
    assert refusal(framed(text)) == f"F:2:{column}: expected at most 10000 fields, found more"


def test_a_known_trace_may_be_told_without_declarations() -> None:
    begin = KNOWN_BEGIN.replace('"begin"', '"begin","separator":" "')
    text = f'{begin}{{"record":"ROW","yes":true}}\n{KNOWN_END}'
    assert rendered(text) == b"TRACE known-v1 BEGIN\nROW yes=true\nTRACE known-v1 END\n"


NOT_JSON = {
    "": "F:1:1: expected a trace, found nothing",
    BEGIN: "F:2:1: expected the end of the trace without a name, found nothing",
    KNOWN_BEGIN: "F:2:1: expected the end of known-v1, found nothing",
    "A x=1\n": "F:1:1: expected a JSON object, found 'A x=1'",
    BEGIN + "\n": "F:2:1: expected a JSON object, found nothing",
    BEGIN + "[1]\n": "F:2:1: expected a JSON object, found '[1]'",
    BEGIN + "{}\n": "F:2:1: expected a \"record\" that says its kind, found '{}'",
    BEGIN + '{"record":"A"\n': "F:2:14: expected a comma or the end of the object, found nothing",
    BEGIN + '{"record":"A",}\n': "F:2:15: expected JSON, found '}'",
    BEGIN + '{"record" "A"}\n': "F:2:11: expected a colon after the key, found '\"A\"}'",
    BEGIN + '{"record":"A","x":}\n': "F:2:19: expected JSON, found '}'",
    BEGIN + "{1:2}\n": "F:2:2: expected a key in double quotes, found '1'",
    BEGIN + '{"record":"A"} {}\n': "F:2:16: expected one object a line, found '{}'",
    BEGIN + '{"record":"A","x":1,"x":2}\n': "F:2:21: expected each key once, found '\"x\"'",
    BEGIN + '{"record":"A","x":{"text":"1","text":"1"}}\n': (
        'F:2:19: expected each key once, found \'{"text":"1","text":"1"}}\''
    ),
    BEGIN + '{"record":"A","x":NaN}\n': (
        "F:2:19: expected \"NaN\" in quotes, as JSON has no such number, found 'NaN'"
    ),
    BEGIN + '{"record":"A","x":["NaN\\"",1,-Infinity,NaN]}\n': (
        "F:2:30: expected \"-Infinity\" in quotes, as JSON has no such number, found '-Infinity'"
    ),
    BEGIN + '{"record":"A","x":"\x01"}\n': "F:2:20: expected JSON, found '\\x01\"}'",
    BEGIN + '{"record":"A"}\x7f\n': "F:2:15: expected one object a line, found '\\x7f'",
    b"\x00": "F:1:1: expected a JSON object, found '\\x00'",
    BEGIN + f'{{"record":"A","x":{"9" * 641}}}\n': (
        f"F:2:19: expected integers of at most 640 digits, found '{'9' * 40}...'"
    ),
    BEGIN + f'{{"record":"A","x":{"[" * 100_000}\n': (
        f"F:2:19: expected fewer brackets in brackets, found '{'[' * 40}...'"
    ),
    b'{"record":"\xff"}\n': "F:1:12: expected UTF-8, found byte 0xff",
}


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: ascii(text[-30:]))
def test_what_is_no_json_lines_trace_is_refused(text: str | bytes) -> None:
    assert refusal(text) == NOT_JSON[text]


FRAMES = {
    '{"record":"A"}\n': "F:1:1: expected the begin of a trace before its records, found A",
    END: "F:1:1: expected the begin of a trace before its end, found null",
    BEGIN + END: "F:2:1: expected a record in a trace without a name, found none",
    BEGIN + KNOWN_BEGIN: (
        "F:2:1: expected the end of the trace without a name before another begins, "
        "found the begin of known-v1"
    ),
    KNOWN_BEGIN + END: "F:2:1: expected the end of known-v1, found null",
    '{"record":"TRACE","name":"other-v1","event":"begin"}\n': (
        'F:1:1: expected a trace that this program knows, or its "separator", found "other-v1"'
    ),
    '{"record":"TRACE","name":null,"event":"begin"}\n': (
        'F:1:1: expected a trace\'s name, or its "separator", found null'
    ),
    '{"record":"TRACE","name":"a b","event":"begin"}\n': (
        "F:1:26: expected a name such as swiglu-feed-forward-v1, or null, found '\"a b\"'"
    ),
    '{"record":"TRACE","name":"a","event":"start"}\n': (
        'F:1:38: expected "begin" or "end", found \'"start"\''
    ),
    '{"record":"TRACE","name":"a"}\n': (
        "F:1:1: expected the event of a trace, found none of that name"
    ),
    '{"record":"TRACE","name":"a","event":"begin","x":1}\n': (
        "F:1:46: expected the name, event, separator and newline of a trace, found 'x'"
    ),
    '{"record":"TRACE","name":"a","event":"begin","separator":"|"}\n': (
        'F:1:58: expected " ", found \'"|"\''
    ),
    '{"record":"TRACE","name":null,"event":"begin","separator":","}\n': (
        'F:1:59: expected " " or "|", found \'","\''
    ),
    '{"record":"TRACE","name":"known-v1","event":"begin","newline":"\\n\\n"}\n': (
        'F:1:63: expected "\\r\\n", found \'"\\\\n\\\\n"\''
    ),
    f'{KNOWN_BEGIN}{KNOWN_END[:-2]},"newline":"x"}}\n': 'F:2:61: expected "", found \'"x"\'',
    f'{KNOWN_BEGIN}{KNOWN_END[:-2]},"separator":" "}}\n': (
        "F:2:63: expected a separator at the begin alone, found '\" \"'"
    ),
    f'{KNOWN_BEGIN}{KNOWN_END[:-2]},"newline":""}}\n{KNOWN_BEGIN}': (
        "F:3:1: expected nothing after a line without an end, "
        'found \'{"record":"TRACE","name":"known-v1","eve...\''
    ),
    f'{KNOWN_BEGIN}{KNOWN_END}{KNOWN_BEGIN[:-2]},"newline":"\\r\\n"}}\n': (
        "F:3:1: expected the separator and newline of the first trace, found others"
    ),
    BEGIN + '{"record":1}\n': "F:2:11: expected a kind such as FIXTURE, found '1'",
    BEGIN + '{"record":"A B"}\n': "F:2:11: expected a kind such as FIXTURE, found '\"A B\"'",
}


@pytest.mark.parametrize("text", FRAMES, ids=lambda text: ascii(text[-30:]))
def test_records_stand_between_begins_and_ends_that_match(text: str) -> None:
    assert refusal(text) == FRAMES[text]


LONE = '"\\ud800"'
FIELDS = {
    '"x":1.5': "F:2:19: expected x as an object of a value and its text for reals, found '1.5'",
    '"x":[1.5]': "F:2:19: expected x as an object of a value and its text for reals, found '[1.5]'",
    '"x":[1,"a"]': (
        "F:2:19: expected x as an object of a value and its text, as a list of this form has none, "
        "found '[1,\"a\"]'"
    ),
    '"x":{"a":1}': "F:2:19: expected x as an object of a value and its text, found '{\"a\":1}'",
    '"x":{"value":1,"text":1}': (
        'F:2:19: expected x as an object of a value and its text, found \'{"value":1,"text":1}\''
    ),
    '"x":{"value":1,"text":"2"}': (
        "F:2:19: expected x as a value and the text that stands for it, "
        'found \'{"value":1,"text":"2"}\''
    ),
    '"x":{"value":"1 y=2","text":"1 y=2"}': (
        "F:2:19: expected x as a value that fits in a line, found '1 y=2'"
    ),
    '"x":{"value":"1\\nB","text":"1\\nB"}': (
        "F:2:19: expected x as a value that fits in a line, found '1\\nB'"
    ),
    '"x":{"value":"\\"a","text":"\\"a"}': (
        "F:2:19: expected x as a value that fits in a line, found '\"a'"
    ),
    f'"x":{LONE}': ("F:2:19: expected x as a value that fits in a line, found '\\ud800'"),
    f'"x":{{"value":{LONE},"text":{LONE}}}': (
        "F:2:19: expected x as a value that fits in a line, found '\\ud800'"
    ),
    '"x y":1': "F:2:15: expected a key such as model-width, found 'x y'",
    '"\\n":1': "F:2:15: expected a key such as model-width, found '\\n'",
    '"x=1 y":1': "F:2:15: expected a key such as model-width, found 'x=1 y'",
    '"2":"a"': "F:2:15: expected a key such as model-width, found '2'",
    '"1":7': "F:2:19: expected 1 as a value that fits in a line, found '7'",
    '"0":"a"': "F:2:15: expected a key such as model-width, found '0'",
    '"99999999999":"a"': "F:2:15: expected a key such as model-width, found '99999999999'",
    f'"{"9" * 5000}":"a"': (f"F:2:15: expected a key such as model-width, found '{'9' * 40}...'"),
    '"1":"a b"': "F:2:19: expected 1 as a value that fits in a line, found '\"a b\"'",
    '"1":"a=b"': "F:2:19: expected 1 as a value that fits in a line, found 'a=b'",
    f'"x":{"[" * 99}{"]" * 99}': (
        "F:2:19: expected x as an object of a value and its text, as a list of this form has none, "
        f"found '{'[' * 40}...'"
    ),
}


@pytest.mark.parametrize("fields", FIELDS, ids=lambda fields: ascii(fields[:30]))
def test_fields_must_fit_in_a_line(fields: str) -> None:
    assert refusal(framed(f'{{"record":"A",{fields}}}')) == FIELDS[fields]


MISTOLD = [
    ("1", 1.5),
    ("1", True),
    ("1", "1"),
    ("1", None),
    ("true", 1),
    ("true", "true"),
    ("none", 0),
    ("none", "none"),
    ("1.5", 1),
    ("1.5", "1.5"),
    ("1.0", True),
    ("1.0", None),
    ("1.0", 10**400),
    ("1.0", [1.0]),
    ("nan", "inf"),
    ("nan", 0),
    ("inf", "NaN"),
    ("inf", 1),
    ("inf", "-inf"),
    ("[1.5,2.5]", [1.5]),
    ("[1.5,2.5]", [1.5, 2.5, 3]),
    ("[1.5,2.5]", 1.5),
    ("[1.5,2.5]", [2.5, 1.5]),
    ("[[1.0]]", [1.0]),
    ("word", "other"),
    ("word", ["word"]),
]


@pytest.mark.parametrize(("text", "value"), MISTOLD, ids=lambda one: ascii(one)[:20])
def test_a_text_must_stand_for_its_value(text: str, value: object) -> None:
    told = json.dumps({"value": value, "text": text})
    expected = "F:2:19: expected x as a value and the text that stands for it, found "
    assert refusal(framed(f'{{"record":"A","x":{told}}}')).startswith(expected)
    known = f'{KNOWN_BEGIN}{{"record":"CELL","sum":{told}}}\n{KNOWN_END}'
    assert refusal(known).startswith(expected.replace("2:19: expected x", "2:24: expected sum"))


MISFITS = {
    '"SIZES","width":"2"': "F:2:27: expected width as integer in JSON, found '\"2\"'",
    '"SIZES","width":true': "F:2:27: expected width as integer in JSON, found 'true'",
    '"SIZES","width":[2]': "F:2:27: expected width as integer in JSON, found '[2]'",
    '"SIZES","width":2.5': "F:2:27: expected width as integer in JSON, found '2.5'",
    '"SIZES","width":9007199254740992.0': (
        "F:2:27: expected width as integer in JSON, found '9007199254740992.0'"
    ),
    '"SIZES","word":2.0': "F:2:26: expected word as word in JSON, found '2.0'",
    '"SIZES","grid":[1,-2]': "F:2:26: expected grid as shape in JSON, found '[1,-2]'",
    '"SIZES","grid":"12"': "F:2:26: expected grid as shape in JSON, found '\"12\"'",
    '"SIZES","word":"a b"': "F:2:26: expected word as word in JSON, found '\"a b\"'",
    '"SIZES","word":""': "F:2:26: expected word as word in JSON, found '\"\"'",
    '"SIZES","note":null': "F:2:26: expected note as text in JSON, found 'null'",
    '"ROW","names":["a,b"]': "F:2:25: expected names as words in JSON, found '[\"a,b\"]'",
    '"ROW","yes":"yes"': "F:2:23: expected yes as yes|no in JSON, found '\"yes\"'",
    '"ROW","yes":1': "F:2:23: expected yes as yes|no in JSON, found '1'",
    '"ROW","yes":1.0': "F:2:23: expected yes as yes|no in JSON, found '1.0'",
    '"ROW","ids":[1.5]': "F:2:23: expected ids as integers in JSON, found '[1.5]'",
    '"ROW","ids":[true]': "F:2:23: expected ids as integers in JSON, found '[true]'",
    '"ROW","values":[1]': "F:2:26: expected values as reals as a value and its text, found '[1]'",
    '"ROW","values":{"value":[1.0],"text":"2.000000000000"}': (
        "F:2:26: expected values as a value and the text that stands for it, "
        'found \'{"value":[1.0],"text":"2.000000000000"}\''
    ),
    '"ROW","values":{"value":"a","text":"2.000000000000"}': (
        "F:2:26: expected values as a value and the text that stands for it, "
        'found \'{"value":"a","text":"2.000000000000"}\''
    ),
}


@pytest.mark.parametrize("record", MISFITS)
def test_plain_values_of_a_known_trace_fit_its_declarations(record: str) -> None:
    text = f'{KNOWN_BEGIN}{{"record":{record}}}\n{KNOWN_END}'
    assert refusal(text) == MISFITS[record]


def test_more_digits_than_the_text_shows_are_what_the_text_stands_for() -> None:
    row = '{"record":"ROW","values":{"value":[1.00000000000000022,1e-14,"NaN"],"text":"%s"}}'
    text = "1.000000000000,0.000000000000,nan"
    found = rendered(f"{KNOWN_BEGIN}{row % text}\n{KNOWN_END}")
    assert found.decode().splitlines()[1] == f"ROW values={text}"


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["a b", "a|b", 'a"', "\n", "x=1", "1", "none", "nan", "a\ud800", "\u2028"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.fixed_dictionaries({"value": inner, "text": st.text(max_size=5)}),
        st.text(max_size=5).map(lambda text: {"value": text, "text": text}),
    ),
    max_leaves=6,
)
KEYS = st.one_of(WORDS, st.sampled_from(["1", "2", "a b", "a|b", "", "é", "x=y", "value", "TRACE"]))


@patient
@given(
    st.sampled_from(" |"),
    st.lists(
        st.tuples(st.one_of(WORDS, KEYS), st.dictionaries(KEYS, JSON, max_size=3)), max_size=3
    ),
)
def test_what_is_rendered_is_read_as_the_very_same_fields(
    separator: str, told: list[tuple[str, dict[str, Any]]]
) -> None:
    begin = {"record": "TRACE", "name": None, "event": "begin", "separator": separator}
    objects = [begin, *({"record": kind, **fields} for kind, fields in told)]
    objects.append({"record": "TRACE", "name": None, "event": "end"})
    try:
        text = rendered("".join(f"{json.dumps(one)}\n" for one in objects))
    except TraceError as error:
        one_line(error)
        return
    lines = [event for event in TextEvents(lines_of(text)) if isinstance(event, Line)]
    assert [line.kind for line in lines] == [one["record"] for one in objects[1:-1]]
    assert [[part.key for part in line.parts] for line in lines] == [
        [key for key in one if key != "record"] for one in objects[1:-1]
    ]
    assert rendered(parsed(text)) == text


@patient
@given(st.text(st.sampled_from('{}[]",:\\ \n1.eE-+truefalsn"record"AxTRACE')))
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    try:
        rendered(text)
    except TraceError as error:
        one_line(error)


def test_a_trace_that_was_edited_by_a_program_comes_out_edited() -> None:
    objects = [json.loads(line) for line in parsed(KNOWN).splitlines()]
    objects[2]["ids"] = [3, 4]
    text = "".join(f"{json.dumps(one)}\n" for one in objects)
    assert rendered(text) == KNOWN.replace("ids=1,-2", "ids=3,4").encode()


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.command)
def test_a_word_alone_fits_fields_of_words_alone(entry: Entry) -> None:
    """Of every field of every record; `none` is the word that absence is spelled as."""
    trace = entry.load()
    frame = '{{"record":"TRACE","name":"{}","event":"{}"}}\n'
    for kind in trace.schema:
        for field in kind.fields:
            record = json.dumps({"record": kind.kind, field.key: "none"})
            begin, end = (frame.format(trace.name, event) for event in ("begin", "end"))
            try:
                events = JsonEvents(lines_of(f"{begin}{record}\n{end}"), schema)
                told = "".join(text_of(events)).splitlines()[1]
            except TraceError as error:
                told = str(error)
            spelled = f"{kind.kind} {field.key}="
            assert told in (f"{spelled}none", f'{spelled}"none"') or f"{field.key} as " in told

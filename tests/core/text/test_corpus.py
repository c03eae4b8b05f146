"""Corpora and splits from JSON that may be anything; vocabularies of characters and words."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.autodiff.errors import IndexOutOfBounds
from llm_trace.core.checksums import fnv1a64, labelled
from llm_trace.core.errors import OutOfRange
from llm_trace.core.text import corpus as corpus_module
from llm_trace.core.text.corpus import (
    Corpus,
    Split,
    parse_corpus,
    parse_split,
    partitioned,
)
from llm_trace.core.text.units import Vocabulary, code_points

DOCUMENTS = [
    {"id": f"{language}-{name}", "language": language, "provenance_group": name, "text": text}
    for name, texts in {
        "one": ("One.", "Один."),
        "two": ("Two.", "Два."),
        "three-3": ("Three.", "Три."),
    }.items()
    for language, text in zip(("en", "ru"), texts, strict=True)
]


def data(documents: Any = DOCUMENTS) -> bytes:
    return json.dumps(documents).encode()


def corpus() -> Corpus:
    return parse_corpus(data())


def split_fields(**changes: Any) -> dict[str, Any]:
    fields = {
        "schema_version": 1,
        "corpus_checksum": corpus().checksum,
        "strategy": "fixed-paired-document-holdout-v1",
        "train": ["en-one", "ru-one"],
        "validation": ["en-two", "ru-two"],
        "test": ["en-three-3", "ru-three-3"],
    }
    return fields | changes


def split(**changes: Any) -> Split:
    return parse_split(json.dumps(split_fields(**changes)).encode())


def test_checksums_of_known_bytes() -> None:
    assert fnv1a64(b"") == 0xCBF29CE484222325
    assert fnv1a64(b"a") == 0xAF63DC4C8601EC8C
    assert fnv1a64(b"foobar") == 0x85944171F73967E8
    assert fnv1a64(b"bar", fnv1a64(b"foo")) == fnv1a64(b"foobar")
    assert labelled(0x85944171F73967E8) == "fnv1a64:85944171f73967e8"
    assert labelled(5) == "fnv1a64:0000000000000005"


def test_a_corpus_and_its_partitions() -> None:
    found = corpus()
    assert found.checksum == labelled(fnv1a64(data()))
    assert [document.id for document in found.documents][:2] == ["en-one", "ru-one"]
    parts = partitioned(found, split())
    assert [document.text for document in parts.test] == ["Three.", "Три."]
    assert parts.train + parts.validation + parts.test == found.documents


@dataclass
class Changed:
    """One field of one document, another value or none."""

    index: int
    field: str
    value: Any = None

    def data(self) -> bytes:
        documents = [dict(document) for document in DOCUMENTS]
        if self.value is None:
            del documents[self.index][self.field]
        else:
            documents[self.index][self.field] = self.value
        return data(documents)


KEBAB = "lower-case words and numbers joined by hyphens"
CORPORA: list[tuple[bytes, str]] = [
    (b"\xff", "text: expected UTF-8, found another byte at 0"),
    (b"[", "text: expected JSON, found Expecting value in line 1, column 2"),
    (b"[]", "documents: expected a list that is not empty, found an empty list"),
    (b'{"id": 1}', "documents: expected a list that is not empty, found an object"),
    (
        b"[1]",
        "document 0: expected an object with id, language, provenance_group, text, found a number",
    ),
    (b'[{"id": "a", "id": "a"}]', "text: expected JSON, found the field 'id' twice"),
    (b"[" * 100_000, "text: expected JSON, found lists within lists without end"),
    (b"[" + b"9" * 5000 + b"]", "text: expected JSON, found Exceeds the limit"),
    (data() + b"x", "text: expected JSON, found Extra data in line 1"),
    (Changed(1, "text").data(), "document 1: expected a field text, found none"),
    (
        Changed(1, "author", "me").data(),
        "document 1: expected only id, language, provenance_group, text, found 'author'",
    ),
    (Changed(2, "text", 5).data(), "document 2 text: expected a text, found a number"),
    (Changed(2, "text", " \n").data(), "document 2 text: expected one that is not blank"),
    (
        Changed(2, "text", "\ud800").data(),
        "document 2 text: expected a text, found half a character at 0",
    ),
    (
        Changed(2, "text", "One.").data(),
        "document 2 text: expected one of its own, found that of document 0",
    ),
    (
        Changed(2, "id", "ru-one").data(),
        "document 2 id: expected one of its own, found that of document 1",
    ),
    *(
        (Changed(0, field, value).data(), f"document 0 {field}: expected {KEBAB}, found {value!r}")
        for field in ("id", "language", "provenance_group")
        for value in ("", "En", "1a", "a--b", "a-", "-a", "a b", "é")
        if value.isascii()
    ),
    (Changed(0, "id", "a\n").data(), f"document 0 id: expected {KEBAB}, found 'a\\n'"),
    (Changed(0, "id", "é" * 99).data(), f"document 0 id: expected {KEBAB}, found '\\xe9"),
]


@pytest.mark.parametrize(("source", "refused"), CORPORA)
def test_corpora_that_are_refused(source: bytes, refused: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        parse_corpus(source, "mine.json")
    assert str(caught.value).startswith(f"mine.json {refused}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_files_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "LARGEST", 100)
    with pytest.raises(OutOfRange, match=r"^corpus size: expected at most 100 bytes, found"):
        corpus()


SPLITS: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2, "strategy": "x"}, "schema_version: expected 1, found 2"),
    ({"strategy": "x", "corpus_checksum": "y"}, "strategy: expected fixed-paired-document-holdout"),
    ({"corpus_checksum": "y", "train": []}, "corpus_checksum: expected fnv1a64:"),
    ({"train": []}, "train: expected at least one document, found none"),
    ({"test": []}, "test: expected at least one document, found none"),
    ({"train": ["ru-one", "en-one"]}, "train: expected the corpus's order, found en-one after"),
    ({"train": ["en-one", "en-one"]}, "train: expected the corpus's order, found en-one after"),
    ({"train": ["en-one", "x"]}, "train: expected ids of the corpus, found 'x'"),
    (
        {"test": ["ru-two", "en-three-3", "ru-three-3"]},
        "test: expected documents that are nowhere else, found ru-two, which is in validation",
    ),
    ({"test": ["en-three-3"]}, "partitions: expected every document, found none with ru-three-3"),
    (
        {"train": ["en-one", "ru-three-3"], "test": ["ru-one", "en-three-3"]},
        "provenance group one: expected one partition, found en-one in train, ru-one in test",
    ),
]


@pytest.mark.parametrize(("changes", "refused"), SPLITS)
def test_splits_that_do_not_fit(changes: dict[str, Any], refused: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        partitioned(corpus(), split(**changes), "mine.json")
    assert str(caught.value).startswith(f"mine.json {refused}")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"schema_version": True}, "schema_version: expected a whole number, found True"),
        ({"schema_version": 1.0}, "schema_version: expected a whole number, found 1.0"),
        ({"strategy": None}, "strategy: expected a text, found nothing"),
        ({"train": "en-one"}, "train: expected a list of ids, found a text"),
        ({"train": [1]}, "train: expected a text, found a number"),
        ({"more": 1}, "split: expected only schema_version"),
    ],
)
def test_splits_of_another_form(changes: dict[str, Any], refused: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        split(**changes)
    assert str(caught.value).startswith(f"splits {refused}")


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_one_line(source: bytes) -> None:
    for parse in (parse_corpus, parse_split):
        with pytest.raises(OutOfRange) as caught:
            parse(source)
        assert "\n" not in str(caught.value)


# Vocabularies -----------------------------------------------------------------------------------


def test_characters_have_ids_in_the_order_of_their_code_points() -> None:
    vocabulary = Vocabulary.of("cat кот")
    assert vocabulary.ids == {" ": 1, "a": 2, "c": 3, "t": 4, "к": 5, "\u043e": 6, "т": 7}
    assert vocabulary.encode("cat") == [3, 2, 4]
    assert vocabulary.decode([5, 6, 7]) == "кот"
    assert vocabulary.decode(vocabulary.encode("c?t")) == "c<UNK>t"
    assert code_points("cк🦀") == ["U+0063", "U+043A", "U+1F980"]
    for index in (8, -1):
        with pytest.raises(IndexOutOfBounds):
            vocabulary.decode([index])


def test_words() -> None:
    words = Vocabulary.of("low lower new newest".split())
    assert words.encode(["lower", "lowering"]) == [2, 0]

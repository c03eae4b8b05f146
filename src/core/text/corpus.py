"""A corpus of documents and its split into partitions, both from JSON that may be anything.

Documents of one provenance group tell the same things: one partition has all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...escaping import quoted_value
from ..checksums import fnv1a64, labelled
from ..errors import OutOfRange

LARGEST = 1 << 25  # bytes of a file; texts take many times their size in memory
SCHEMA_VERSION = 1
STRATEGY = "fixed-paired-document-holdout-v1"
PARTITIONS = ("train", "validation", "test")

_KEBAB = re.compile(r"[a-z][a-z0-9]*+(-[a-z0-9]++)*+")


class Document(NamedTuple):
    """One text."""

    id: str
    language: str
    provenance_group: str
    text: str


class Corpus(NamedTuple):
    """Documents in order and the checksum of the file that they are from."""

    documents: tuple[Document, ...]
    checksum: str


class Split(NamedTuple):
    """Which document belongs to which partition."""

    schema_version: int
    corpus_checksum: str
    strategy: str
    train: tuple[str, ...]  # ids
    validation: tuple[str, ...]
    test: tuple[str, ...]


class Partitions(NamedTuple):
    """The documents of every partition in the order of the corpus."""

    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    test: tuple[Document, ...]


def parse_corpus(data: bytes, name: str = "corpus") -> Corpus:
    """A JSON list of objects with the four fields of a document, all texts.

    Ids, languages and groups are lower-case words and numbers joined by hyphens, texts are not
    blank, and ids and texts are unique. Raises OutOfRange, which names the first that is not so.
    """
    found = _json(data, name)
    if not isinstance(found, list) or not found:
        raise _refused(name, "documents", "a list that is not empty", _kind(found))
    documents = [_document(each, name, f"document {index}") for index, each in enumerate(found)]
    for part in ("id", "text"):
        first_at: dict[str, int] = {}
        for index, document in enumerate(documents):
            first = first_at.setdefault(getattr(document, part), index)
            if first != index:
                where = f"document {index} {part}"
                raise _refused(name, where, "one of its own", f"that of document {first}")
    return Corpus(tuple(documents), labelled(fnv1a64(data)))


def parse_split(data: bytes, name: str = "splits") -> Split:
    """A JSON object with the fields of a split. Raises OutOfRange."""
    fields = _fields(_json(data, name), Split._fields, name, "split")
    version = fields["schema_version"]
    if type(version) is not int:
        raise _refused(name, "schema_version", "a whole number", quoted_value(version))
    checksum, strategy = (
        _text(fields[part], name, part) for part in ("corpus_checksum", "strategy")
    )
    ids = (_ids(fields[part], name, part) for part in PARTITIONS)
    return Split(version, checksum, strategy, *ids)


def partitioned(corpus: Corpus, split: Split, name: str = "splits") -> Partitions:
    """The documents of a split that fits the corpus: complete, disjoint, groups together.

    Raises OutOfRange, in the order of the fields and then for the first document.
    """
    for part, expected, found in (
        ("schema_version", SCHEMA_VERSION, split.schema_version),
        ("strategy", STRATEGY, split.strategy),
        ("corpus_checksum", corpus.checksum, split.corpus_checksum),
    ):
        if found != expected:
            raise _refused(name, part, str(expected), quoted_value(found))
    positions = {document.id: index for index, document in enumerate(corpus.documents)}
    for partition in PARTITIONS:
        _require_order(positions, getattr(split, partition), name, partition)
    assigned = _assigned(positions, split, name)
    groups: dict[str, Document] = {}
    for document in corpus.documents:
        if document.id not in assigned:
            raise _refused(name, "partitions", "every document", f"none with {document.id}")
        first = groups.setdefault(document.provenance_group, document)
        if assigned[first.id] != assigned[document.id]:
            raise _refused(
                name,
                f"provenance group {document.provenance_group}",
                "one partition",
                f"{first.id} in {assigned[first.id]}, {document.id} in {assigned[document.id]}",
            )
    return Partitions(
        *(
            tuple(document for document in corpus.documents if assigned[document.id] == partition)
            for partition in PARTITIONS
        )
    )


def _require_order(
    positions: dict[str, int], ids: Sequence[str], name: str, partition: str
) -> None:
    if not ids:
        raise _refused(name, partition, "at least one document", "none")
    known = [identity for identity in ids if identity in positions]
    for before, after in pairwise(known):
        if positions[after] <= positions[before]:
            raise _refused(name, partition, "the corpus's order", f"{after} after {before}")


def _assigned(positions: dict[str, int], split: Split, name: str) -> dict[str, str]:
    """The partition of every document that has one."""
    assigned: dict[str, str] = {}
    for partition in PARTITIONS:
        for identity in getattr(split, partition):
            if identity not in positions:
                raise _refused(name, partition, "ids of the corpus", quoted_value(identity))
            if identity in assigned:
                where = f"{identity}, which is in {assigned[identity]}"
                raise _refused(name, partition, "documents that are nowhere else", where)
            assigned[identity] = partition
    return assigned


def _json(data: bytes, name: str) -> Any:
    if len(data) > LARGEST:
        raise _refused(name, "size", f"at most {LARGEST} bytes", f"{len(data)}")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise _refused(name, "text", "UTF-8", f"another byte at {error.start}") from error
    except json.JSONDecodeError as error:
        where = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise _refused(name, "text", "JSON", where) from error
    except RecursionError as error:
        raise _refused(name, "text", "JSON", "lists within lists without end") from error
    except ValueError as error:  # a field twice, a number with thousands of digits
        raise _refused(name, "text", "JSON", str(error)) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [field for field, _ in pairs]
        twice = next(field for field in names if names.count(field) > 1)
        raise ValueError(f"the field {quoted_value(twice)} twice")
    return found


def _document(found: Any, name: str, where: str) -> Document:
    fields = _fields(found, Document._fields, name, where)
    texts = {part: _text(fields[part], name, f"{where} {part}") for part in Document._fields}
    for part in ("id", "language", "provenance_group"):
        if not _KEBAB.fullmatch(texts[part]):
            expected = "lower-case words and numbers joined by hyphens"
            raise _refused(name, f"{where} {part}", expected, quoted_value(texts[part]))
    if not texts["text"].strip():
        raise _refused(name, f"{where} text", "one that is not blank", "a blank one")
    return Document(**texts)


def _fields(found: Any, expected: tuple[str, ...], name: str, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _refused(name, where, f"an object with {', '.join(expected)}", _kind(found))
    for field in expected:
        if field not in found:
            raise _refused(name, where, f"a field {field}", "none")
    for field in found:
        if field not in expected:
            raise _refused(name, where, f"only {', '.join(expected)}", quoted_value(field))
    return found


def _text(found: Any, name: str, where: str) -> str:
    if not isinstance(found, str):
        raise _refused(name, where, "a text", _kind(found))
    try:
        found.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _refused(name, where, "a text", f"half a character at {error.start}") from error
    return found


def _ids(found: Any, name: str, where: str) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise _refused(name, where, "a list of ids", _kind(found))
    return tuple(_text(each, name, where) for each in found)


def _kind(found: Any) -> str:
    kinds = {list: "a list", dict: "an object", str: "a text", bool: "a truth value"}
    if isinstance(found, list) and not found:
        return "an empty list"
    return "nothing" if found is None else kinds.get(type(found), "a number")


def _refused(name: str, part: str, expected: str, found: str) -> OutOfRange:
    return OutOfRange(layer=name, part=part, expected=expected, found=found)

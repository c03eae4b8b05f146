"""A trace as one HTML file in which one steps through its records and points at its numbers.

The file asks for nothing: its style and its script are in it, and its own policy forbids the rest.
The numbers are there twice, as data for the script and as the trace's text for whoever has none.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from ...errors import Unexpected
from ...escaping import printable, visible
from ...report.lines import Line
from .descriptions import Described, FieldView, RecordView
from .labels import marked_up

_SCRIPTS = ("viewer-model.js", "viewer-parts.js", "viewer-graph.js", "viewer.js")
MAX_RECORDS, MAX_NUMBERS = 20_000, 1_000_000  # that a browser can still show
MAX_CHARACTERS = 20_000_000
_NAMES = {"gradient": "gradientOf"}  # of fields in the data, where they differ


class TooLarge(Unexpected):
    """A trace that no browser would show in one page."""

    def __init__(self, file: str, expected: int, what: str, found: int) -> None:
        super().__init__(printable(file), f"at most {expected} {what}", str(found))


def require_size(file: str, lines: Sequence[Line]) -> None:
    """Raise TooLarge for a trace that is too large for a page."""
    if len(lines) > MAX_RECORDS:
        raise TooLarge(file, MAX_RECORDS, "records in a page", len(lines))
    numbers = sum(part.text.count(",") + 1 for line in lines for part in line.parts)
    if numbers > MAX_NUMBERS:
        raise TooLarge(file, MAX_NUMBERS, "values in a page", numbers)
    characters = sum(len(part.text) for line in lines for part in line.parts)
    if characters > MAX_CHARACTERS:
        raise TooLarge(file, MAX_CHARACTERS, "characters in a page", characters)


def page(title: str, about: str, described: Described, lines: Iterable[Line], svg: str = "") -> str:
    """The whole file. `svg` is the drawing of the computation, if there is one.

    The drawing's nodes say in `data-record` and `data-field` what they stand for.
    """
    style, script = _asset("viewer.css"), "\n".join(map(_asset, _SCRIPTS))
    styles = [style, *re.findall(r"<style>(.*?)</style>", svg, re.DOTALL)]
    return Template(_asset("viewer.html")).substitute(
        policy=_policy(styles, [script]),
        title=marked_up(title),
        about=marked_up(about),
        style=style,
        script=script,
        data=_embedded(_data(title, described)),
        graph=svg,
        text="\n".join(marked_up(_text(line), quote=False) for line in lines),
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Nothing may be loaded, and nothing may run but what is in the file by these hashes."""
    style, script = (" ".join(map(_hash, texts)) for texts in (styles, scripts))
    sources = f"style-src {style}; script-src {script}"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(title: str, described: Described) -> dict[str, Any]:
    fixture = described.fixture
    return {
        "title": title,
        "fixture": _record(fixture) if fixture else None,
        "records": [*map(_record, described.records)],
    }


def _record(record: RecordView) -> dict[str, Any]:
    return _told(record) | {"fields": [*map(_told, record.fields)]}


def _told(view: RecordView | FieldView) -> dict[str, Any]:
    """What is known of a record or a field, by name."""
    known: Sequence[tuple[str, Any]] = [*view._asdict().items()]
    return {_NAMES.get(name, name): value for name, value in known if value not in ("", 0, None)}


def _embedded(data: Any) -> str:
    """JSON that no text in it can break out of: ASCII, without the marks of HTML."""
    text = json.dumps(data, separators=(",", ":"))
    if "\\u" in text:  # which few traces hold
        text = json.dumps(_all_visible(data), separators=(",", ":"))
    return re.sub(r"[<>&]", lambda mark: f"\\u{ord(mark[0]):04x}", text)


def _all_visible(data: Any) -> Any:
    match data:
        case str():
            return visible(data)
        case dict():
            return {key: _all_visible(value) for key, value in data.items()}
        case list() | tuple():
            return [*map(_all_visible, data)]
    return data


def _text(line: Line) -> str:
    """The line as it stands in the trace."""
    parts = (part.text if part.key.isdigit() else f"{part.key}={part.text}" for part in line.parts)
    return line.separator.join((line.kind, *parts))

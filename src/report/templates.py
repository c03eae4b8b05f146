"""The texts of an original program as templates over named facts.

A fact stands in braces, by a path: `{Query.values}`, `{checks.query.worst}`. `%for row in Position`
(or `%for key, value in facts`) and `%end`, `%if Independence`, `%else` and `%end` stand on lines of
their own, and a line that ends in a backslash goes on in the next. Everything else is printed
whatever happens, so no number and no answer is written out.

The records of a class are a fact by the name of the class: `Query.values` is a field of the only
record, `Position.0.input` of the first, `Stage.scores.values` of the one whose key is `scores`, and
`Position.*.input` of all; a whole record is its line. A function of no arguments is called when it
is first asked for.

After a colon stand words that say how a fact is spelled: `6` digits after the point, `6e` in
exponent form, `shortest`, `positional`; `raw`, `zero` or `flat` for what becomes of a negative
zero; `spaced` for a space after each comma, `bar`, `bars` or `plus` for what stands in its place;
`x` for 2x3; `lists` for [1,2],[3,4];
`yes/no` and other words for a flag; `all` for whether all of a list's hold, `is bitwise` for
whether a word is that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.numerics.digits import fixed, positional, scientific, shortest
from .records import Record
from .style import FLAT, ZERO, Style
from .values import ABSENT, reals_text, shape_text

_FACT = re.compile(r"\{([\w.*-]+)(?::([^{}]*))?\}")
_SHORT = {"shortest": shortest, "positional": positional}
_JOINERS = {"spaced": ", ", "bars": " | ", "bar": "|", "plus": " + "}
_POLICIES = {"raw": 0.0, "zero": ZERO, "flat": FLAT}


class TemplateError(Exception):
    """A template that is not well formed, or names a fact that there is not: a defect."""


class Fact(NamedTuple):
    """The place of a fact."""

    path: str
    spelling: str


class Loop(NamedTuple):
    """A part that is repeated for each item of a fact."""

    names: tuple[str, ...]
    path: str
    body: Sequence[Node]


class Choice(NamedTuple):
    """A part that is printed where a fact holds, and one for where it does not."""

    path: str
    holds: Sequence[Node]
    otherwise: Sequence[Node]


Node = str | Fact | Loop | Choice


def parsed(template: str) -> list[Node]:
    """The parts of a template. Raises TemplateError."""
    lines = iter(template.splitlines())
    nodes, end = _block(lines)
    if end:
        raise TemplateError(f"expected a line that %{end} ends, found none")
    return nodes


def rendered(template: str, facts: Mapping[str, Any], style: Style) -> Iterator[str]:
    """The text in pieces; every fact is computed before the first. Raises TemplateError."""
    pieces = [*_resolved(parsed(template), _Facts(facts))]
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        else:
            yield from spelled(*piece, style)


def _block(lines: Iterator[str]) -> tuple[list[Node], str]:
    """The parts up to the word that ends the block, and that word."""
    nodes: list[Node] = []
    for line in lines:
        if not line.startswith("%"):
            nodes += _parts(line.removesuffix("\\") + ("" if line.endswith("\\") else "\n"))
            continue
        match re.split(r",? ", line[1:]):
            case ["for", *names, "in", path]:
                body, end = _block(lines)
                nodes.append(Loop((*names,), path, body))
            case ["if", path]:
                holds, end = _block(lines)
                otherwise, end = _block(lines) if end == "else" else ([], end)
                nodes.append(Choice(path, holds, otherwise))
            case ["else" | "end" as word]:
                return nodes, word
            case _:
                raise TemplateError(f"expected %for, %if, %else or %end, found {line}")
        if end != "end":
            raise TemplateError(f"expected %end of {line}, found {end or 'the end'}")
    return nodes, ""


def _parts(line: str) -> Iterator[Node]:
    at = 0
    for found in _FACT.finditer(line):
        yield line[at : found.start()]
        yield Fact(found[1], found[2] or "")
        at = found.end()
    rest = line[at:]
    if "{" in rest or "}" in rest:
        raise TemplateError(f"expected facts in braces, found {rest.rstrip()}")
    yield rest


def _resolved(nodes: Sequence[Node], facts: _Facts) -> Iterator[str | tuple[Any, str]]:
    for node in nodes:
        match node:
            case str():
                yield node
            case Fact():
                yield facts.found(node.path), node.spelling
            case Choice():
                chosen = node.holds if _holds(facts.found(node.path)) else node.otherwise
                yield from _resolved(chosen, facts)
            case Loop():
                for items in _items(facts.found(node.path), len(node.names)):
                    yield from _resolved(node.body, facts.within(node.names, items))


def _holds(value: Any) -> bool:
    return value is not None and bool(value)


def _items(value: Any, names: int) -> Iterator[tuple[Any, ...]]:
    if names == 1:
        return ((item,) for item in value)
    return iter(value.items() if isinstance(value, Mapping) else enumerate(value))


class _Facts:
    """Facts by path."""

    def __init__(self, given: Mapping[str, Any], called: dict[str, Any] | None = None) -> None:
        self.given = given
        self._called: dict[str, Any] = {} if called is None else called

    def within(self, names: Sequence[str], items: Sequence[Any]) -> _Facts:
        """The same facts, and those of one turn of a loop."""
        return _Facts({**self.given, **dict(zip(names, items, strict=True))}, self._called)

    def found(self, path: str) -> Any:
        name, *rest = path.split(".")
        value = self.given.get(name, self)
        if isinstance(value, FunctionType):
            if name not in self._called:
                self._called[name] = value()
            value = self._called[name]
        try:
            if value is self:
                raise KeyError(name)
            return _walked(value, rest)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise TemplateError(f"expected a fact {path}, found {error!r}") from error


def _walked(value: Any, steps: Sequence[str]) -> Any:
    for at, step in enumerate(steps):
        if step == "*":
            return [_walked(item, steps[at + 1 :]) for item in value]
        value = _step(value, step)
    return value


def _step(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value[name]
    if isinstance(value, Sequence | np.ndarray) and name.isdigit():
        return value[int(name)]
    if isinstance(value, list):
        keyed = [record for record in value if name in _keys(record)]
        (record,) = keyed or value
        return record if keyed else getattr(record, name)
    return getattr(value, name)


def _keys(record: Any) -> set[str]:
    fields = record.fields if isinstance(record, Record) else ()
    return {str(getattr(record, field.attribute)) for field in fields if field.aligns}


def spelled(value: Any, spelling: str, style: Style) -> Iterable[str]:
    """A fact as text, in pieces."""
    if isinstance(value, Record):
        return value.text(style)
    if not isinstance(value, Exception):
        value = getattr(value, "value", value)  # a tensor's
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.shape):
        value = value.item()
    words = spelling.split()
    if words[:1] == ["is"]:
        value, words = value == words[1], words[2:]
    if "all" in words:
        value = all(value)
    for word in words:
        if "/" in word:
            return (word.split("/")[0 if value else 1],)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return _reals(value, words, style)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if words == ["x"]:
            return (shape_text(tuple(value)),)
        nested = "lists" in words and value and isinstance(value[0], list | tuple | np.ndarray)
        inner = " ".join(word for word in words if word != "lists") if nested else spelling
        items = ("".join(spelled(item, inner, style)) for item in value)
        items = (f"[{item}]" for item in items) if nested else items
        return (next((_JOINERS[word] for word in words if word in _JOINERS), ",").join(items),)
    if isinstance(value, float):
        zero = next((_POLICIES[word] for word in words if word in _POLICIES), 0.0)
        return (_real(words, style)(0.0 if abs(value) < zero else value),)
    if isinstance(value, bool | None):
        return ({True: "true", False: "false", None: ABSENT}[value],)
    return (str(value),)


def _reals(values: Array, words: Sequence[str], style: Style) -> Iterator[str]:
    """A list of reals, row by row."""
    if "lists" in words:
        others = [word for word in words if word != "lists"]
        rows = ("".join(_reals(row, others, style)) for row in values)
        yield ",".join(f"[{row}]" for row in rows)
        return
    zero = next((_POLICIES[word] for word in words if word in _POLICIES), style.zero)
    digits = next((int(word) for word in words if word.isdigit()), style.digits)
    values = np.where(np.abs(values) < zero, 0.0, values)
    if "spaced" in words or not {*words} <= {*_POLICIES, str(digits)}:
        real = _real(words, style)
        yield (", " if "spaced" in words else ",").join(map(real, values.reshape(-1).tolist()))
    else:
        yield from reals_text(values, digits, style.empty)


def _real(words: Sequence[str], style: Style) -> Callable[[float], str]:
    for word in words:
        if word in _SHORT:
            return _SHORT[word]
        if word.rstrip("e").isdigit():
            digits = int(word.rstrip("e"))
            spell = scientific if word.endswith("e") else fixed
            return lambda value: spell(value, digits)
    return lambda value: fixed(value, style.digits)

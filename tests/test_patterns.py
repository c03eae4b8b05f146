"""No pattern of the program goes back over a text again and again, however long it is.

A repetition that gives back what it took may hold no other of its kind, and none may follow that
takes the same characters: both try every way to share a text before they fail.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import llm_trace

ROOT = Path(llm_trace.__file__).parent
ALPHABET = frozenset(map(chr, range(128))) | {"é"}
GIVES_BACK = (op.MAX_REPEAT, op.MIN_REPEAT)
REPEATS = (*GIVES_BACK, op.POSSESSIVE_REPEAT)
ENDLESS = 1000  # times
CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def characters(items: Any) -> frozenset[str]:
    """What a set holds of the alphabet."""
    found: set[str] = set()
    for code, value in items:
        if code is op.LITERAL:
            found.add(chr(value))
        elif code is op.RANGE:
            found |= {*map(chr, range(value[0], min(value[1], 0x1000) + 1))}
        elif code is op.CATEGORY:
            negated, _, name = str(value).removeprefix("CATEGORY_").rpartition("NOT_")
            of = {one for one in ALPHABET if re.fullmatch(CATEGORIES[name or negated], one)}
            found |= ALPHABET - of if "NOT_" in str(value) else of
    within = ALPHABET & found
    return ALPHABET - within if items and items[0][0] is op.NEGATE else within


def flat(items: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a sequence with those of its groups among them."""
    for code, value in items:
        if code is op.SUBPATTERN:
            yield from flat(value[-1])
        else:
            yield code, value


def begins(items: Any) -> tuple[frozenset[str], bool]:
    """With which characters a sequence can begin, and whether it can be empty."""
    first: frozenset[str] = frozenset()
    for code, value in flat(items):
        more, empty = begins_one(code, value)
        first |= more
        if not empty:
            return first, False
    return first, True


def begins_one(code: Any, value: Any) -> tuple[frozenset[str], bool]:
    if code is op.LITERAL:
        return ALPHABET & {chr(value)}, False
    if code is op.NOT_LITERAL:
        return ALPHABET - {chr(value)}, False
    if code is op.ANY:
        return ALPHABET, False
    if code is op.IN:
        return characters(value), False
    if code in REPEATS:
        first, empty = begins(value[2])
        return first, empty or value[0] == 0
    if code is op.BRANCH or code is op.GROUPREF_EXISTS:
        ways = [begins(way or ()) for way in (value[1] if code is op.BRANCH else value[1:])]
        return frozenset().union(*(first for first, _ in ways)), any(empty for _, empty in ways)
    if code is op.ATOMIC_GROUP:
        return begins(value)
    return frozenset(), True  # places, and what looks ahead


def inner(code: Any, value: Any) -> list[Any]:
    """The sequences in an item."""
    if code in REPEATS:
        return [value[2]]
    if code is op.BRANCH:
        return [*value[1]]
    if code is op.GROUPREF_EXISTS:
        return [way for way in value[1:] if way]
    if code is op.ATOMIC_GROUP:
        return [value]
    return [value[1]] if code in (op.ASSERT, op.ASSERT_NOT) else []


def endless(code: Any, value: Any) -> bool:
    return code in REPEATS and value[1] >= ENDLESS


def holds_another(items: Any) -> bool:
    return any(
        (code in GIVES_BACK and endless(code, value))
        or (
            code not in (op.ATOMIC_GROUP, op.POSSESSIVE_REPEAT)
            and any(map(holds_another, inner(code, value)))
        )
        for code, value in flat(items)
    )


def ambiguous(items: Any) -> bool:
    """Whether a text can be shared out in many ways."""
    sequence = [*flat(items)]
    for at, (code, value) in enumerate(sequence):
        if any(map(ambiguous, inner(code, value))):
            return True
        if code not in GIVES_BACK or not endless(code, value):
            continue
        if holds_another(value[2]):
            return True
        taken = begins(value[2])[0]
        for following, other in sequence[at + 1 :]:
            first, empty = begins_one(following, other)
            if endless(following, other) and first & taken:
                return True
            if not empty:
                break
    return False


@pytest.mark.parametrize(
    "wrong",
    [
        r"[0-9]+\.?[0-9]*",
        r"(?:a+)*b",
        r"(?:a|b+)*c",
        r"\s*(?:#.*)?\s*$",
        r"(a*)(?:b?)([a-z]++)",
        r"(?:x(?:[0-9]+,?)*)?",
        r".*?.*",
    ],
)
def test_the_judge_sees_what_goes_back(wrong: str) -> None:
    assert ambiguous(parser.parse(wrong))


@pytest.mark.parametrize(
    "right", [r"[0-9]++(?:\.[0-9]*+)?+", r"(?:a+)*+b", r"[a-z]+=[a-z]+", r"(?>a+)*+", r"a+b*c"]
)
def test_the_judge_lets_the_others_be(right: str) -> None:
    assert not ambiguous(parser.parse(right))


def patterns() -> Iterator[tuple[str, str]]:
    """Every pattern that can be told without running a function, with its place."""
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(("llm_trace", *parts)).removesuffix(".__init__")
        calls = [
            node
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args
        ]
        module = importlib.import_module(name) if calls or "pattern" in file.read_text() else None
        for call in calls:
            place, first = f"{name}:{call.lineno}", ast.unparse(call.args[0])
            try:
                yield place, eval(first, dict(vars(module)))
            except NameError:  # told by an argument or by an object, of which the next ones are
                continue
        for key, value in vars(module).items() if module else ():
            found = getattr(value, "pattern", None)
            if isinstance(found, str) and not isinstance(value, re.Pattern):
                yield f"{name}.{key}", f"{found}(?:,{found})*+"


PATTERNS = dict(patterns())


def test_no_pattern_of_the_program_goes_back() -> None:
    assert len(PATTERNS) > 50
    wrong = {place: text for place, text in PATTERNS.items() if ambiguous(parser.parse(text))}
    assert not wrong

"""Formulas rewritten by rules: `silu(A) -> A * sigmoid(1.702 * A)`.

A capital letter stands for any expression, the same one wherever it comes again; behind a dot it
stands for any attribute, and before an ending such as `_bias` for any that ends so.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple


class Rule(NamedTuple):
    """What is looked for, and what is put in its place."""

    pattern: ast.expr
    replacement: ast.expr
    whole: bool  # whether only the whole formula is meant


@cache
def rules_of(text: str) -> tuple[Rule, ...]:
    """The rules of a text, with semicolons between them; `=` before a pattern means the whole."""
    found = []
    for one in text.split(";"):
        left, _, right = one.partition("->")
        whole = left.strip().startswith("=")
        found.append(Rule(_parsed(left.strip().removeprefix("=")), _parsed(right), whole))
    return tuple(found)


@cache
def variants(expression: str, text: str) -> tuple[str, ...]:
    """The expression with a rule of the text applied everywhere, then at one place at a time."""
    tree = _parsed(expression)
    made: dict[str, None] = {}
    for rule in rules_of(text):
        places = 1 if rule.whole else sum(1 for _ in _nodes(tree))
        hits = [
            place
            for place, node in zip(range(places), _nodes(tree), strict=False)
            if _unified(rule.pattern, node, {}) is not None
        ]
        for chosen in [hits] if len(hits) < 2 else [hits, *([hit] for hit in hits)]:
            if chosen:
                made[ast.unparse(_Replacing({*chosen}, rule).visit(_numbered(tree)))] = None
    made.pop(ast.unparse(tree), None)
    return tuple(made)


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _nodes(tree: ast.expr) -> Iterator[ast.expr]:
    """Every expression in it, outer ones before those in them."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _nodes_of(child)


def _nodes_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes_of(child)


def _numbered(tree: ast.expr) -> ast.expr:
    """A copy whose expressions know their places."""
    made = copy.deepcopy(tree)
    for place, node in enumerate(_nodes(made)):
        node.place = place  # type: ignore[attr-defined]
    return made


class _Replacing(ast.NodeTransformer):
    def __init__(self, places: set[int], rule: Rule) -> None:
        self._places, self._rule = places, rule

    def visit(self, node: ast.AST) -> Any:
        here = getattr(node, "place", -1) in self._places
        node = self.generic_visit(node)
        found = _unified(self._rule.pattern, node, {}) if here else None
        return _Filled(found).visit(copy.deepcopy(self._rule.replacement)) if found else node


class _Filled(ast.NodeTransformer):
    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        filled: ast.AST = self._found.get(node.id, node)
        return copy.deepcopy(filled)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._found.get(f".{node.attr}", node.attr)
        return node


def _unified(pattern: Any, node: Any, found: dict[str, Any]) -> dict[str, Any] | None:
    """What the capital letters stand for, None where the node is another."""
    if isinstance(pattern, ast.Name) and _any(pattern.id):
        if not isinstance(node, ast.expr):
            return None
        known = found.setdefault(pattern.id, node)
        return found if ast.dump(known) == ast.dump(node) else None
    if type(pattern) is not type(node):
        return None
    if isinstance(pattern, ast.AST):
        for name in pattern._fields:
            if name in ("ctx", "kind"):
                continue
            mine, other = getattr(pattern, name), getattr(node, name)
            if name == "attr" and _any(mine):
                if not _ends_like(mine, other) or found.setdefault(f".{mine}", other) != other:
                    return None
            elif _unified(mine, other, found) is None:
                return None
        return found or {"": None}
    if isinstance(pattern, list):
        if len(pattern) != len(node):
            return None
        for mine, other in zip(pattern, node, strict=True):
            if _unified(mine, other, found) is None:
                return None
        return found or {"": None}
    return (found or {"": None}) if pattern == node else None


def _any(name: str) -> bool:
    letter, mark, _ = name.partition("_")
    return len(letter) == 1 and letter.isupper() and bool(mark or letter != "T")


def _ends_like(pattern: str, name: str) -> bool:
    """Whether an attribute is one that `B_bias` stands for, or any where the letter is alone."""
    ending = pattern.partition("_")[2]
    return name != "T" and (name == ending or name.endswith(f"_{ending}") if ending else True)

"""Formulas that only take numbers of the fixture, and work out nothing."""

from __future__ import annotations

import ast


def copied(formula: str | None) -> str | None:
    """The array or number of the fixture that a formula takes, and does nothing with."""
    return _name(ast.parse(formula.strip(), mode="eval").body) if formula else None


def _name(tree: ast.expr) -> str | None:
    while isinstance(tree, ast.Subscript):
        tree = tree.value
    match tree:
        case ast.Call(func=ast.Name(id="reshape" | "float32"), args=[array, *_]):
            return _name(array)
        case ast.Attribute(value=ast.Name(id="fixture"), attr=name):
            return name
    return None

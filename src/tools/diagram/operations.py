"""What a formula does, in few words, from its text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.Pow: "**",
}
_SHAPING = {
    "reshape",
    "concat",
    "zeros",
    "where",
    "every",
}  # which say little of what is worked out
_PATH = re.compile(r"[A-Z][A-Z0-9]*+(?:-[A-Z0-9]++)*+(?:\((?:[^()]|\([^()]*+\))*+\))?+\.")


@cache
def is_copy(expression: str) -> bool:
    """Whether the formula takes another field as it is, or a part of it, or its rows joined."""
    return _is_copy(ast.parse(expression, mode="eval").body)


def _is_copy(tree: ast.expr) -> bool:
    match tree:
        case ast.Name():
            return True
        case ast.Attribute(value=ast.Call(func=ast.Name())):
            return True
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return _is_copy(inner)
        case ast.Call(func=ast.Name(id="reshape"), args=[inner, *_]):
            return _is_copy(inner)
    return False


@cache
def is_sum(expression: str) -> bool:
    """Whether the formula is a sum of terms."""
    tree = ast.parse(expression, mode="eval").body
    return isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add)


@cache
def is_product(expression: str) -> bool:
    """Whether the formula is a product of two things."""
    tree = ast.parse(expression, mode="eval").body
    return isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult | ast.MatMult)


@cache
def is_linear(expression: str) -> bool:
    """Whether the formula is a matrix product with numbers of the fixture."""
    tree = ast.parse(expression, mode="eval").body
    return "fixture." in expression and any(map(_is_matrix_product, ast.walk(tree)))


@cache
def words(expression: str) -> tuple[str, ...]:
    """The functions and operators of the formula, each once, as they are worked out.

    A sum of matrix products is `linear`.
    """
    tree = ast.parse(expression, mode="eval").body
    if is_sum(expression) and any(map(_is_matrix_product, ast.walk(tree))):
        calls = [name for name in _found(tree) if name.isidentifier()]
        return (*dict.fromkeys(["linear", *calls]),)
    return (*dict.fromkeys(_found(tree)),)


def _is_matrix_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def _found(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        yield from _found(child)
    match tree:
        case ast.Call(func=ast.Name(id=name)) if name[0].islower() and name not in _SHAPING:
            yield name
        case ast.BinOp(op=operator) if type(operator) in _SYMBOLS:
            yield _SYMBOLS[type(operator)]


def brief(printed: str) -> str:
    """A printed formula without kinds of fields, `fixture`, and what only shapes or picks."""
    text = _PATH.sub("", printed).replace("fixture.", "")
    text = re.sub(r"\.T\b", "", text)
    for pattern, kept in ((r"\[[^\[\]():]*\]", ""), (r"\breshape\(([\w.-]+),[^()]*\)", r"\1")):
        text = re.sub(pattern, kept, text)
    return text

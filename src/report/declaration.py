"""What a trace says of itself, read from its decorator without importing anything.

Lists, help and options need no more than this. Names and words are literals there; whether a trace
has a training or an original is told by the keyword.
"""

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import Unexpected
from ..escaping import printable


def is_kebab(text: str) -> bool:
    """Whether it is words of a-z and 0-9, joined by -."""
    return text.isascii() and text == text.lower() and all(map(str.isalnum, text.split("-")))


class Declaration(NamedTuple):
    """The facts of one `@trace(…)`."""

    stem: str  # "swiglu-feed-forward"
    version: int
    source: str  # where its numbers come from: "Chapter 20"
    shows: str  # what it shows: "a gated feed-forward block"
    choices: tuple[str, ...] = ()  # fields of the fixture for which the command has options
    trains: bool = False
    has_original: bool = False  # whether an original program prints the same numbers

    @property
    def name(self) -> str:
        """What stands in the trace's first line: `swiglu-feed-forward-v1`."""
        return f"{self.stem}-v{self.version}"


class DeclarationError(Unexpected):
    """A trace's module that does not say what it has to: `FILE:LINE: expected …, found …`."""

    def __init__(self, path: str, line: int, expected: str, found: str) -> None:
        super().__init__(f"{printable(path)}:{line}", expected, found)


def read_declaration(path: str) -> tuple[Declaration, int]:
    """What the module's only `@trace(…)` says, and on which line. Raises DeclarationError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        call, above = _quickly(text) or _carefully(text, path)
    except (OSError, ValueError) as error:  # a SyntaxError is told with its line
        raise DeclarationError(path, 1, "a module in UTF-8", str(error)) from error
    arguments = _Arguments(call, path, above)
    declared = Declaration(
        arguments.text("name", is_kebab, "words of a-z and 0-9 joined by -"),
        arguments.whole("version"),
        arguments.line("source"),
        arguments.line("shows"),
        arguments.names("choices"),
        arguments.given("training"),
        arguments.given("original"),
    )
    return declared, call.lineno + above


def read_docstring(path: str) -> str:
    """The module's docstring, which -OO would drop."""
    with open(path, encoding="utf-8") as file:
        return ast.get_docstring(ast.parse(file.read())) or ""


def _quickly(text: str) -> tuple[ast.Call, int] | None:
    """The decorator and the lines above it, where it is plain to see: lists read all modules."""
    start = text.find("\n@trace(") + 1
    if not start or text.count("@trace(") != 1 or ".trace(" in text:
        return None
    try:
        call = ast.parse(text[start + 1 : text.find("\ndef ", start)].rstrip(), mode="eval").body
    except SyntaxError:
        return None
    return (call, text.count("\n", 0, start)) if isinstance(call, ast.Call) else None


def _carefully(text: str, path: str) -> tuple[ast.Call, int]:
    """The same from the whole module."""
    try:
        found = _decorators(ast.parse(text))
    except SyntaxError as error:
        raise DeclarationError(path, error.lineno or 1, "Python", error.msg) from error
    if len(found) != 1:
        at = found[1].lineno if found else 1
        raise DeclarationError(path, at, "one function under @trace(…)", str(len(found) or "none"))
    return found[0], 0


def _decorators(module: ast.Module) -> list[ast.Call]:
    """Every `@trace(…)` or `@something.trace(…)` of a function."""
    return [
        decorator
        for statement in module.body
        if isinstance(statement, ast.FunctionDef)
        for decorator in statement.decorator_list
        if isinstance(decorator, ast.Call)
        and "trace" in (getattr(decorator.func, name, None) for name in ("id", "attr"))
    ]


class _Arguments:
    """The arguments of the decorator, each read as what it has to be. Raises DeclarationError."""

    def __init__(self, call: ast.Call, path: str, above: int) -> None:
        self.path, self.above, self.start = path, above, call.lineno
        self.nodes: dict[str | None, ast.expr] = dict(zip(("name",), call.args, strict=False))
        self.nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
        if None in self.nodes:
            raise self.error(self.nodes[None], "keywords one by one", "** of some")

    def error(self, node: ast.expr | None, expected: str, found: str) -> DeclarationError:
        line = node.lineno if node else self.start
        return DeclarationError(self.path, line + self.above, expected, found)

    def given(self, key: str) -> bool:
        """Whether there is such a keyword, and not with None."""
        node = self.nodes.get(key)
        return node is not None and not (isinstance(node, ast.Constant) and node.value is None)

    def literal(self, key: str, expected: str, default: Any = None) -> Any:
        node = self.nodes.get(key)
        if node is None:
            if default is None:
                raise self.error(None, f"{key} of the trace", "none")
            return default
        try:
            return ast.literal_eval(node)
        except ValueError:
            found = ast.unparse(node)[:60]
            raise self.error(node, f"{key} written out as {expected}", found) from None

    def refused(self, key: str, expected: str) -> DeclarationError:
        node = self.nodes[key]
        return self.error(node, f"{key} as {expected}", ast.unparse(node)[:60])

    def text(self, key: str, fits: Callable[[str], bool], expected: str) -> str:
        value = self.literal(key, expected)
        if not (isinstance(value, str) and value and fits(value)):
            raise self.refused(key, expected)
        return value

    def line(self, key: str) -> str:
        def fits(value: str) -> bool:
            return value.isascii() and value.isprintable()

        return self.text(key, fits, "one line of printable ASCII")

    def whole(self, key: str) -> int:
        value = self.literal(key, expected := "a whole number from 1")
        if type(value) is not int or value < 1:
            raise self.refused(key, expected)
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.literal(key, expected := "a tuple of names", ())
        if not (isinstance(value, tuple) and all(isinstance(name, str) for name in value)):
            raise self.refused(key, expected)
        return value

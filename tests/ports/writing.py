"""Programs of computations: the emitted source, with a computation where its own code goes."""

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from llm_trace.tools.emit.language import Language
from llm_trace.tools.emit.plan import Plan
from llm_trace.tools.emit.program import LANGUAGES, program

from .computations import COMPUTATIONS
from .mistakes import MISTAKES


class Statement(NamedTuple):
    """`name = loops | sum or maximum | expression`."""

    name: str
    loops: tuple[tuple[str, int], ...]
    over: tuple[str, int] | None
    largest: bool
    expression: str


def parsed(line: str) -> Statement:
    name, rest = line.split(" = ", 1)
    loops, over, expression = (part.strip() for part in rest.split("|", 2))
    inner = re.fullmatch(r"(max )?l(\d+)", over)
    return Statement(
        name,
        tuple((word[0], int(word[1:])) for word in loops.split()),
        ("l", int(inner[2])) if inner else None,
        bool(inner and inner[1]),
        expression,
    )


class Syntax(NamedTuple):
    """How one language says what a computation needs."""

    start: str
    array: str
    loop: str
    back: str
    end: str = "}"
    number: str = "real s = {};"
    mark: str = ";"
    larger: str = "s = pick({0} > s, {0}, s)"


C = Syntax(
    """
extern char *getenv(const char *);
extern int atoi(const char *);
#define pick(c, a, b) ((c) ? (a) : (b))
#define sigmoid(x) (1 / (1 + exp(-(x))))
#define slope(x) (sigmoid(x) * (1 + (x) * (1 - sigmoid(x))))
#define number(i) ((real)(i))
#define div(a, b) ((a) / (b))
int bug = atoi(getenv("BUG"));
""",
    "real {name}[{size}] = {{0}};",
    "for (int {0} = 0; {0} < {1}; {0}++) {{",
    "for (int {0} = {1} - 1; {0} >= 0; {0}--) {{",
)
RUST = Syntax(
    """
fn pick(c: bool, a: Real, b: Real) -> Real { if c { a } else { b } }
fn exp(x: Real) -> Real { x.exp() }
fn tanh(x: Real) -> Real { x.tanh() }
fn sqrt(x: Real) -> Real { x.sqrt() }
fn sin(x: Real) -> Real { x.sin() }
fn cos(x: Real) -> Real { x.cos() }
fn pow(x: Real, y: Real) -> Real { x.powf(y) }
fn number(i: usize) -> Real { i as Real }
fn div(a: usize, b: usize) -> usize { a / b }
fn sigmoid(x: Real) -> Real { 1.0 / (1.0 + exp(-x)) }
fn slope(x: Real) -> Real { sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))) }
let bug: usize = std::env::var("BUG").unwrap().parse().unwrap();
""",
    "let mut {name} = vec![0.0 as Real; {size}];",
    "for {0} in 0..{1} {{",
    "for {0} in (0..{1}).rev() {{",
    number="let mut s: Real = {};",
)
JAVASCRIPT = Syntax(
    """
const { exp, tanh, sqrt, sin, cos, pow } = Math;
const pick = (c, a, b) => (c ? a : b);
const sigmoid = (x) => 1 / (1 + exp(-x));
const slope = (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x)));
const number = (i) => i;
const div = (a, b) => Math.trunc(a / b);
const bug = Number(process.env.BUG);
""",
    "const {name} = new Reals({size});",
    "for (let {0} = 0; {0} < {1}; {0}++) {{",
    "for (let {0} = {1} - 1; {0} >= 0; {0}--) {{",
    number="let s = {};",
)
PYTHON = Syntax(
    """
import os
from math import cos, exp, pow, sin, sqrt, tanh
pick = lambda c, a, b: a if c else b
sigmoid = lambda x: 1 / (1 + exp(-x))
slope = lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x)))
number, div = float, int.__floordiv__
bug = int(os.environ["BUG"])
""",
    "{name} = [0.0] * {size}",
    "for {0} in range({1}):",
    "for {0} in reversed(range({1})):",
    end="",
    number="s = {}",
    mark="",
)
SYNTAX = {"c": C, "rust": RUST, "javascript": JAVASCRIPT, "python": PYTHON}


class Writer:
    """Writes a trace's computation in a language, with every mistake in it to be switched on."""

    def __init__(self, trace: str, language: str, plan: Plan) -> None:
        self.trace, self.language = trace, language
        self.known, self.syntax = LANGUAGES[language], SYNTAX[language]
        self.fixture = plan.fixture
        self.plan = plan
        self.text = COMPUTATIONS[trace]

    def names(self) -> set[str]:
        """The lists that are computed."""
        return {*re.findall(r"^(\w+) = ", self.text, flags=re.M)}

    def source(self, float32: bool) -> str:
        """The whole program."""
        reals = f"const Reals = Float{32 if float32 else 64}Array;\n"
        start = reals * (self.language == "javascript") + self.code()
        text = filled(self.known, self.plan, self.trace, start, self.names())
        if float32:
            text = text.replace("typedef double", "typedef float").replace("= f64;", "= f32;")
        return text

    def code(self) -> str:
        """What stands in the program's own place."""
        lines = [self.syntax.start]
        flat = [name for name in self.fixture.specs if self.is_array(name)]
        if self.language in ("python", "javascript"):
            const = "const " * (self.language == "javascript")
            lines += [
                f"{const}f_{name} = numbers({self.known.called(name)}){self.syntax.mark}"
                for name in flat
            ]
        timed: list[tuple[str, int]] = []
        body = []
        for line in filter(None, map(str.strip, self.text.splitlines())):
            if line == "@":
                body += [self.syntax.end]
                timed = []
            elif line.startswith("@"):
                (_, name, steps, *back) = re.split(r"@ (\w)(\d+)", line)
                timed = [(name, int(steps))]
                form = self.syntax.back if "back" in back[0] else self.syntax.loop
                body += [form.format(*timed[0])]
            else:
                statement = parsed(line)
                size = prod(steps for _, steps in (*timed, *statement.loops))
                lines.append(self.syntax.array.format(name=statement.name, size=size))
                margin = "    " if timed else ""
                body += [margin + line for line in self.statement(statement, timed)]
        return "\n".join(lines + body)

    def statement(self, said: Statement, timed: list[tuple[str, int]]) -> Iterator[str]:
        """One list, or one step of it."""
        index = flat_index([*timed, *said.loops])
        term = self.expression(self.with_mistakes(said), index)
        for depth, loop in enumerate(said.loops):
            yield "    " * depth + self.syntax.loop.format(*loop)
        margin, mark = "    " * len(said.loops), self.syntax.mark
        if said.over:
            yield margin + self.syntax.number.format("-1e30" if said.largest else "0.0")
            yield margin + self.syntax.loop.format(*said.over)
            add = self.syntax.larger.format(term) if said.largest else f"s += {term}"
            yield f"{margin}    {add}{mark}"
            yield margin + self.syntax.end
            term = "s"
        yield f"{margin}{said.name}[{index}] = {term}{mark}"
        yield self.syntax.end * len(said.loops)

    def with_mistakes(self, said: Statement) -> str:
        """The expression, or another one where a mistake is switched on."""
        expression = said.expression
        for number, mistake in enumerate(MISTAKES, 1):
            if mistake.trace == self.trace and said.name in mistake.instead:
                expression = (
                    f"pick(bug == {number}, ({mistake.instead[said.name]}), ({expression}))"
                )
        return expression

    def expression(self, text: str, index: str) -> str:
        """The expression with the language's names."""
        text = re.sub(r"(\w+)@", rf"\1[{index}]", text)
        for name in self.fixture.specs:
            called = self.known.called(name)
            if self.language in ("python", "javascript") and self.is_array(name):
                called = f"f_{name}"
            if self.language == "rust" and isinstance(getattr(self.fixture, name), tuple):
                text = re.sub(rf"\b{name}\[(\w)\]", rf"({called}[\1] as usize)", text)
            elif name not in self.names():
                text = re.sub(rf"\b{name}\b", called, text)
        return text

    def is_array(self, name: str) -> bool:
        """Whether a field of the fixture is a list of numbers."""
        value = getattr(self.fixture, name)
        return isinstance(value, np.ndarray) or (
            isinstance(value, tuple) and all(isinstance(item, int) for item in value)
        )


def filled(language: Language, plan: Plan, trace: str, code: str, names: set[str]) -> str:
    """The emitted program with that code, and all that is known after it uncommented."""
    kinds = tuple(
        tuple(
            group._replace(puts=puts)
            for group in groups
            if (puts := tuple(put for put in group.puts if put.known or put.values in names))
            or group.live
        )
        for groups in plan.kinds
    )
    text = program(language, plan._replace(kinds=kinds), trace, None, most=10**6)
    mark = re.escape(language.remark)
    text = re.sub(rf"^( *){mark} (?= *(?:for |record\(|put\(|\}}))", r"\1", text, flags=re.M)
    return re.sub(rf"^ *{mark} YOUR CODE.*", lambda _: code, text, flags=re.M)


def flat_index(loops: list[tuple[str, int]]) -> str:
    """The place of a number, row by row."""
    terms = [
        f"{name}*{step}" if (step := prod(steps for _, steps in loops[at + 1 :])) > 1 else name
        for at, (name, _) in enumerate(loops)
    ]
    return "+".join(terms) or "0"

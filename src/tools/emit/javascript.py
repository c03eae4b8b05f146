"""JavaScript, for any of its programs on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arrays import Array
from .language import Language, nested
from .plan import Loop


class _JavaScript(Language):
    """Arrays are nested; what is printed may be nested, flat or typed."""

    name = "javascript"
    margin = ""
    run = "node port.mjs"
    taken = frozenset(
        """arguments await break case catch class const continue debugger default delete do else
        enum eval export extends false finally for function if implements import in instanceof
        interface let new null package private protected public return static super switch this
        throw true try typeof var void while with yield numbers whole endless text lines
        record put""".split()
    )
    helpers = """
const numbers = (x) => (Object(x) === x ? Array.from(x, numbers).flat() : [x]);
const whole = (x) => `${BigInt(x)}.000000000000`;
const endless = (x) => (isNaN(x) ? "nan" : x < 0 ? "-inf" : "inf");
const text = (x) => (Math.abs(x) < 1e21 ? x.toFixed(12) : isFinite(x) ? whole(x) : endless(x));
const lines = ["TRACE {name} BEGIN"];
const record = (start) => lines.push(start); // begins a record
const put = (key, values, i, n) => { // numbers i * n to i * n + n
  const run = numbers(values).slice(i * n, i * n + n).map(text);
  lines.push(`${lines.pop()} ${key}=${run.join() || "none"}`);
};
"""
    opening = """
// YOUR CODE: compute, from the numbers above"""
    closing = """\
lines.push("TRACE {name} END");
console.log(lines.join("\\n"));"""

    def array(self, name: str, values: Array) -> str:
        return f"const {name} = {nested(values)};"

    def integers(self, name: str, values: Sequence[int]) -> str:
        return f"const {name} = [{', '.join(map(_integer, values))}];"

    def real(self, name: str, value: float) -> str:
        return f"const {name} = {value!r};"

    def integer(self, name: str, value: int) -> str:
        return f"const {name} = {_integer(value)};"

    def loops(self, loops: Sequence[Loop]) -> str:
        return " ".join(
            f"for (let {loop.name} = 0; {loop.name} < {loop.steps}; {loop.name}++) {{"
            for loop in loops
        )

    def form(self, said: str, loops: Sequence[Loop]) -> str:
        if not loops:
            return self.text(said)
        for mark in ("\\", "`", "${"):
            said = said.replace(mark, f"\\{mark}")
        return f"`{said}{''.join(f' {loop.key}=${{{loop.name}}}' for loop in loops)}`"


def _integer(value: int) -> str:
    return f"{value}" if abs(value) < 1 << 53 else f"{value}n"


JAVASCRIPT = _JavaScript()

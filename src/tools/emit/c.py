"""C, from C99 on."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arrays import Array
from .language import Language, flat
from .plan import Loop


class _C(Language):
    """Arrays are flat, row by row, as a program has them behind a pointer."""

    name = "c"
    run = "cc -o port port.c -lm && ./port"
    taken = frozenset(
        """auto bool break case char const continue default do double else enum extern false
        float for goto if inline int long main nullptr put real record register restrict
        return short signed sizeof static struct switch true typedef typeof union unsigned
        void volatile while stdin stdout stderr abs exp log pow sin cos tan sqrt floor ceil
        round gamma index time y0 y1 yn j0 j1 jn printf signbit isnan isinf""".split()
    )
    head = """\
#include <math.h>
#include <stdio.h>

typedef double real; // or float: say --dtype float32 then
"""
    helpers = """
#define record(...) (printf("\\n"), printf(__VA_ARGS__)) // begins a record

void put(const char *key, const real *values, int i, int n) { // numbers i * n to i * n + n
    printf(" %s=%s", key, n ? "" : "none");
    for (int k = 0; k < n; k++) {
        double x = values[i * n + k];
        isnan(x) ? printf("%snan", k ? "," : "") : printf("%s%.12f", k ? "," : "", x);
    }
}
"""
    opening = """
int main(void) {
    // YOUR CODE: compute, from the numbers above
    printf("TRACE {name} BEGIN");"""
    closing = """\
    printf("\\nTRACE {name} END\\n");
    return 0;
}"""

    def array(self, name: str, values: Array) -> str:
        size = max(values.size, 1)  # C has no arrays without elements
        return f"const real {name}[{size}] = {{{flat(values) or 0.0}}};"

    def integers(self, name: str, values: Sequence[int]) -> str:
        return f"const long long {name}[{len(values)}] = {{{', '.join(map(_integer, values))}}};"

    def real(self, name: str, value: float) -> str:
        return f"const real {name} = {value!r};"

    def integer(self, name: str, value: int) -> str:
        kind = "long long" if value < 1 << 63 else "unsigned long long"
        return f"const {kind} {name} = {_integer(value)};"

    def text(self, value: str) -> str:
        return super().text(value).replace("??", '?""?')  # else a trigraph

    def single(self, name: str) -> str:
        return f"&{name}"

    def loops(self, loops: Sequence[Loop]) -> str:
        return " ".join(
            f"for (int {loop.name} = 0; {loop.name} < {loop.steps}; {loop.name}++) {{"
            for loop in loops
        )

    def form(self, said: str, loops: Sequence[Loop]) -> str:
        keys = "".join(f" {loop.key}=%d" for loop in loops)
        names = "".join(f", {loop.name}" for loop in loops)
        return self.text(said.replace("%", "%%") + keys) + names


def _integer(value: int) -> str:
    return f"{value}ULL" if value >= 1 << 63 else f"{value}"


C = _C()

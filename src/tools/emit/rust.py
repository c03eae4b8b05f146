"""Rust, without crates."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arrays import Array
from .language import Language, flat
from .plan import Loop, Put


class _Rust(Language):
    """Arrays are flat, row by row, so that slices of them are rows."""

    name = "rust"
    run = "rustc -o port port.rs && ./port"
    taken = frozenset({"REAL"})
    head = """\
#![allow(dead_code)]

type Real = f64; // or f32: say --dtype float32 then
"""
    helpers = """
fn record(start: &str) {
    print!("\\n{start}");
}

fn put(key: &str, values: &[Real], i: usize, n: usize) {
    let run = values[i * n..][..n].iter().map(|x| format!("{x:.12}").to_lowercase());
    print!(" {key}={}", if n == 0 { "none".into() } else { run.collect::<Vec<_>>().join(",") });
}
"""
    opening = """
fn main() {
    // YOUR CODE: compute, from the numbers above
    print!("TRACE {name} BEGIN");"""
    closing = """\
    println!("\\nTRACE {name} END");
}"""

    def called(self, name: str) -> str:
        return super().called(name.upper())

    def array(self, name: str, values: Array) -> str:
        return f"static {name}: [Real; {values.size}] = [{flat(values)}];"

    def integers(self, name: str, values: Sequence[int]) -> str:
        return f"static {name}: [u64; {len(values)}] = [{', '.join(map(str, values))}];"

    def real(self, name: str, value: float) -> str:
        return f"const {name}: Real = {value!r};"

    def integer(self, name: str, value: int) -> str:
        return f"const {name}: u64 = {value};" if value >= 0 else f"const {name}: i64 = {value};"

    def loops(self, loops: Sequence[Loop]) -> str:
        return " ".join(f"for {loop.name} in 0..{loop.steps} {{" for loop in loops)

    def form(self, said: str, loops: Sequence[Loop]) -> str:
        if not loops:
            return self.text(said)
        keys = "".join(f" {loop.key}={{{loop.name}}}" for loop in loops)
        return f"&format!({self.text(said.replace('{', '{{').replace('}', '}}') + keys)})"

    def single(self, name: str) -> str:
        return f"[{name}]"

    def list(self, put: Put) -> str:
        return f"&{super().list(put)}"


RUST = _Rust()

"""Python, alone and with PyTorch."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from ...core.arrays import Array
from .language import Language, nested
from .plan import Loop


class _Python(Language):
    """Arrays are nested lists; what is printed may be lists or arrays of any package."""

    name = "python"
    remark = "#"
    margin = ""
    end = ""
    run = "python port.py"
    taken = frozenset(keyword.kwlist) | frozenset(
        """numbers record put product print range slice list tuple isinstance hasattr""".split()
    )
    head = "from itertools import product\n"
    helpers = """

def numbers(values):
    if isinstance(values, (list, tuple)):
        return [number for row in values for number in numbers(row)]
    return values.reshape(-1).tolist() if hasattr(values, "reshape") else [values]


def record(start):  # begins a record
    print("\\n" + start, end="")


def put(key, values, i, n):  # numbers i * n to i * n + n
    run = slice(i * n, i * n + n)
    run = values.reshape(-1)[run].tolist() if hasattr(values, "reshape") else numbers(values)[run]
    print(f" {key}=" + (",".join(f"{x:.12f}" for x in run) or "none"), end="")

"""
    opening = """
# YOUR CODE: compute, from the numbers above
print("TRACE {name} BEGIN", end="")"""
    closing = """\
print("\\nTRACE {name} END")"""

    def array(self, name: str, values: Array) -> str:
        return f"{name} = {nested(values)}"

    def integers(self, name: str, values: Sequence[int]) -> str:
        return f"{name} = {[*values]}"

    def real(self, name: str, value: float) -> str:
        return f"{name} = {value!r}"

    def integer(self, name: str, value: int) -> str:
        return f"{name} = {value}"

    def loops(self, loops: Sequence[Loop]) -> str:
        names = ", ".join(loop.name for loop in loops)
        if len(loops) == 1:
            return f"for {names} in range({loops[0].steps}):"
        counts = ", ".join(f"range({loop.steps})" for loop in loops)
        return f"for {names} in product({counts}):"

    def done(self, loops: Sequence[Loop]) -> str:
        return ""

    def aside(self, statements: str) -> str:
        return f" # {statements}"

    def form(self, said: str, loops: Sequence[Loop]) -> str:
        if not loops:
            return self.text(said)
        keys = "".join(f" {loop.key}={{{loop.name}}}" for loop in loops)
        return f"f{self.text(said.replace('{', '{{').replace('}', '}}') + keys)}"


class _PyTorch(_Python):
    """Arrays are tensors of one dtype."""

    name = "pytorch"
    taken = _Python.taken | {"torch", "DTYPE"}
    head = """\
from itertools import product

import torch

DTYPE = torch.float64  # or float32 or bfloat16: say so with --dtype
"""

    def array(self, name: str, values: Array) -> str:
        whole = f"torch.tensor({nested(values)}, dtype=DTYPE)"
        if not values.size:
            whole = f"torch.zeros({values.shape}, dtype=DTYPE)"
        return f"{name} = {whole}"


PYTHON = _Python()
PYTORCH = _PyTorch()

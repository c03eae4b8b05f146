"""A guard: nothing in `core` may call what gives other bits, or another order, elsewhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import llm_trace.core

CORE = Path(llm_trace.core.__file__).parent

NUMPY = frozenset(
    """add.reduce add.reduceat average char convolve core corrcoef correlate cos cosh cov cross
    ctypeslib cumprod cumsum dot einsum emath exp exp2 expm1 fft float_power gradient hypot inner
    interp kron lib.scimath linalg log log10 log1p log2 logaddexp matmul matvec mean
    multiply.reduce nanmean nanprod nansum nanstd nanvar outer polynomial power prod random sin
    sinc sinh std sum tan tanh tensordot trace trapezoid trapz ufunc var vdot vecdot vecmat arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh cbrt deg2rad rad2deg""".split()
)
METHODS = frozenset("cumprod cumsum dot mean prod std sum trace var".split())
MATH = frozenset(
    """acos acosh asin asinh atan atan2 atanh cbrt cos cosh dist erf erfc exp exp2 expm1 fma fsum
    gamma hypot lgamma log log10 log1p log2 pow sin sinh sumprod tan tanh""".split()
)
BUILTINS = frozenset("id pow sum".split())
MODULES = frozenset(
    "cmath datetime glob locale os platform random secrets socket statistics sys time uuid".split()
)
INTEGERS = "# of integers"  # what a line says that sums or raises whole numbers


def findings(source: str) -> Iterator[tuple[int, str]]:
    """Line and complaint for everything in `source` whose result may depend on the machine."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        found = complaint(node)
        line = getattr(node.iter if isinstance(node, ast.comprehension) else node, "lineno", 0)
        if found and not (found in ("sum(", "**", "np.cumsum") and INTEGERS in lines[line - 1]):
            yield line, found


def complaint(node: ast.AST) -> str | None:
    match node:
        case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
            return "@"
        case ast.BinOp(op=ast.Pow(), left=base, right=exponent) if not power_of_two(base, exponent):
            return "**"
        case ast.Import(names=names) if any(n.name == "numpy" and n.asname != "np" for n in names):
            return "numpy under another name than np"
        case ast.Import(names=names) if {name.name.split(".")[0] for name in names} & MODULES:
            return "import of a module that knows the machine"
        case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in MODULES:
            return "import from a module that knows the machine"
        case ast.ImportFrom(module="math" | "numpy", names=names):
            return next((f"import of {n.name}" for n in names if n.name in MATH | NUMPY), None)
        case ast.Attribute():
            return forbidden_attribute(ast.unparse(node))
        case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
            return f"{name}("
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in METHODS:
            return None if is_module(owner) else f".{name}("
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated) if is_set(iterated):
            return "iteration over a set"
    return None


def forbidden_attribute(text: str) -> str | None:
    module, _, name = text.partition(".")
    if module == "np" and (name in NUMPY or name.split(".")[0] in NUMPY):
        return text
    return text if module == "math" and name in MATH else None


def power_of_two(base: ast.expr, exponent: ast.expr) -> bool:
    """2 to a whole power is exact in every libm."""
    if isinstance(exponent, ast.UnaryOp):
        exponent = exponent.operand
    whole = isinstance(exponent, ast.Constant) and isinstance(exponent.value, int)
    return whole and isinstance(base, ast.Constant) and base.value == 2


def is_module(node: ast.expr) -> bool:
    """Whose functions are judged by their full names."""
    return isinstance(node, ast.Name) and node.id in ("math", "np", "numpy")


def is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(attr="union" | "intersection" | "difference"), args=[*_]):
            return True
    return False


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda p: str(p.relative_to(CORE)))
def test_core_asks_nothing_of_the_machine(path: Path) -> None:
    found = [f"{path}:{line}: {what}" for line, what in findings(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("snippet", "what"),
    [
        ("y = a @ b", "@"),
        ("a @= b", "@"),
        ("y = np.dot(a, b)", "np.dot"),
        ("y = np.sum(a)", "np.sum"),
        ("y = a.sum()", ".sum("),
        ("y = (a * b).mean(axis=0)", ".mean("),
        ("f = np.exp", "np.exp"),
        ("y = math.exp(x)", "math.exp"),
        ("from math import tanh", "import of tanh"),
        ("from numpy import einsum", "import of einsum"),
        ("y = np.add.reduce(a)", "np.add.reduce"),
        ("y = np.linalg.norm(a)", "np.linalg.norm"),
        ("y = np.random.default_rng(0)", "np.random.default_rng"),
        ("import random", "import of a module that knows the machine"),
        ("import os.path", "import of a module that knows the machine"),
        ("from time import perf_counter", "import from a module that knows the machine"),
        ("y = sum(values)", "sum("),
        ("y = math.fsum(values)", "math.fsum"),
        ("y = x ** 0.5", "**"),
        ("y = 2.0 ** 0.5", "**"),
        ("y = 10.0 ** 3", "**"),
        ("import numpy as n", "numpy under another name than np"),
        ("y = np.emath.log(x)", "np.emath.log"),
        ("y = np.add.reduceat(x, i)", "np.add.reduceat"),
        ("y = pow(x, 0.5)", "pow("),
        ("key = id(node)", "id("),
        ("for x in {1, 2}: pass", "iteration over a set"),
        ("y = [x for x in set(names)]", "iteration over a set"),
    ],
)
def test_the_guard_sees(snippet: str, what: str) -> None:
    assert next(findings(f"\n{snippet}")) == (2, what)


@pytest.mark.parametrize(
    "snippet",
    [
        "y = np.sqrt(a) * 2.0**-53",
        "count = sum(sizes)  # of integers",
        "y = np.add.accumulate(a, axis=0)",
        "y = math.prod(shape)",
        "limit = 1 << 64",
        "y = self.exp(x)",
        "for x in sorted({1, 2}): pass",
    ],
)
def test_the_guard_lets_pass(snippet: str) -> None:
    assert [*findings(snippet)] == []

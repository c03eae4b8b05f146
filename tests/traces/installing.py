"""A package of traces, installed as its users would install it."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

TRACE = '''"""One number, doubled. The words training= and choice( are no declarations."""

from collections.abc import Iterator

from llm_trace.fixtures import fixture as declare
from llm_trace.report import trace as of
from llm_trace.report.records import Record, field
from llm_trace.report.values import Real, Word


class Numbers(declare.Fixture):
    """One number."""

    number: float = declare.real(21.0, "What is doubled")
    sign: str = declare.choice("plus", ("plus", "minus"), "Its sign")


class Doubled(Record):
    """The result."""

    sign: Word = field("of the number")
    twice: Real = field("two of it", formula="fixture.number * 2")


@of.trace(
    "doubling",
    version=3,
    source="Elsewhere",
    shows="a number, twice",
    fixture=Numbers,
    choices=("sign",),
)
def doubling(fixture: Numbers) -> Iterator[Doubled]:
    yield Doubled(sign=fixture.sign, twice=2.0 * fixture.number)
'''


def install(folder: Path, modules: Mapping[str, str], points: Mapping[str, str]) -> Path:
    """Install a wheel of these modules and entry points; the folder belongs on PYTHONPATH."""
    wheel, target = folder / "elsewhere-1.0-py3-none-any.whl", folder / "installed"
    group = "".join(f"{command} = {module}\n" for command, module in points.items())
    files = {
        "elsewhere/__init__.py": 'print("imported")\n',
        **{f"elsewhere/{name}.py": text for name, text in modules.items()},
        "elsewhere-1.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n"
        ),
        "elsewhere-1.0.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        "elsewhere-1.0.dist-info/entry_points.txt": f"[llm_trace.traces]\n{group}",
    }
    files["elsewhere-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-index", "--no-deps", "--no-compile", "--target", str(target)]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    return target

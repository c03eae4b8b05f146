"""What others computed, as numbers in `data/`.

`week06/` has the tables that the course's chapter prints, with three significant digits; forward
values in float64 that a run with 50 digits agrees with, and gradients by PyTorch's autograd in
float64; and the bits of its recurrent example in float32.
`originals.sha256` has the digests of everything that the original Rust program prints.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"


@cache
def _file(name: str) -> Any:
    return json.loads((DATA / "week06" / f"{name}.json").read_text("ascii"))


def _at(name: str, path: tuple[str, ...]) -> Any:
    found = _file(name)
    for key in path:
        found = found[key]
    return found


def table(number: int) -> list[list[str]]:
    """A printed table's rows, without the header."""
    rows: list[list[str]] = _at("tables", (str(number),))
    return rows


def stated(*path: str) -> Any:
    """A parameter that the chapter states."""
    return _at("parameters", path)


def forward(*path: str) -> Any:
    """A value of the chapter's example in full precision."""
    return _at("full-precision", path)


def oracle(*path: str) -> Any:
    """Inputs and results of autograd."""
    return _at("torch-oracle", path)


def torch_example(*path: str) -> Any:
    """PyTorch's recurrent example."""
    return _at("torch-example", path)


def originals() -> dict[str, str]:
    """The digest of every output of the original program, by the golden file's name."""
    lines = (DATA / "originals.sha256").read_text("ascii").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def close(found: Any, expected: Any) -> bool:
    """Within the tolerance of what was computed in float64, shape included."""
    wanted = np.array(expected)
    assert np.shape(found) == wanted.shape
    return bool(np.allclose(found, wanted, rtol=1e-11, atol=1e-14))


def assert_oracle(found: Any, expected: Any) -> None:
    """The same, and where it is not, which numbers."""
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)

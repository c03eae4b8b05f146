"""The chapter's tables and numbers where they are at hand, and records instead of lines."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from llm_trace.report.records import Record
from llm_trace.traces import entries

FOLDER = Path(__file__).parents[2].parent / "shared" / "reference" / "week06"
needs_reference = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no reference data in {FOLDER}")

R = TypeVar("R", bound=Record)


def table(number: int) -> list[list[str]]:
    """A printed table's rows, without the header."""
    (path,) = FOLDER.glob(f"table-{number:02d}-*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)][1:]


def data(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def rounded(values: Sequence[float] | np.ndarray[Any, Any]) -> list[str]:
    """As the chapter's tables print them."""
    return [format(value, ".3g") for value in values]


def close(found: Any, expected: Any) -> bool:
    """Within the oracle's tolerance, shape included."""
    wanted = np.array(expected)
    assert np.shape(found) == wanted.shape
    return bool(np.allclose(found, wanted, rtol=1e-11, atol=1e-14))


def records(command: str, **fields: Any) -> list[Record]:
    trace = entries()[command].load()
    return [*trace.records(trace.fixture(**fields))]


def of(kind: type[R], found: list[Record]) -> list[R]:
    """The records of one kind, in order."""
    return [record for record in found if isinstance(record, kind)]

"""Records instead of lines, and numbers as the chapter's tables print them."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from llm_trace.report.records import Record
from llm_trace.traces import entries

R = TypeVar("R", bound=Record)


def rounded(values: Sequence[float] | np.ndarray[Any, Any]) -> list[str]:
    """As the chapter's tables print them."""
    return [format(value, ".3g") for value in values]


def records(command: str, **fields: Any) -> list[Record]:
    trace = entries()[command].load()
    return [*trace.records(trace.fixture(**fields))]


def of(kind: type[R], found: list[Record]) -> list[R]:
    """The records of one kind, in order."""
    return [record for record in found if isinstance(record, kind)]


def column(found: Sequence[Record], name: str) -> np.ndarray[Any, Any]:
    """One field of records of one kind."""
    return np.array([getattr(record, name) for record in found])

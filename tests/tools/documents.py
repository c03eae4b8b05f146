"""Golden traces as documents."""

from functools import cache
from pathlib import Path

from llm_trace.report.lines import parse_line
from llm_trace.tools.formulas.document import Document
from llm_trace.traces import entries

GOLDEN = Path(__file__).parents[2] / "golden"
ENTRIES = {name: entry for name, entry in entries().items() if not entry.trains}


@cache
def golden(command: str) -> Document:
    """The golden trace with the fixture that it comes from."""
    trace = ENTRIES[command].load()
    texts = (GOLDEN / f"{command}.trace").read_text().splitlines()
    lines = [parse_line(text, number, command) for number, text in enumerate(texts, 1)]
    return Document(lines, trace.schema, trace.fixture())

"""What a diagram is coloured by: a word for each field with numbers."""

from __future__ import annotations

from ..diagram.marks import Marks
from .reference import real
from .shadows import fields_of
from .verdict import Verdict


def marks(verdict: Verdict) -> Marks:
    """guilty, inherited, right, or unseen where the port did not print it."""
    words: dict[tuple[int, str], str] = {}
    for entry, declared in fields_of(verdict.shadows.document):
        if real(getattr(entry.record, declared.attribute)) and not declared.aligns:
            printed = (entry.ordinal, declared.attribute) in verdict.port.numbers
            words[entry.ordinal, declared.key] = "right" if printed else "unseen"
    for cell in verdict.inherited:
        words[cell.entry.ordinal, cell.declared.key] = "inherited"
    for cell in verdict.guilty:
        words[cell.entry.ordinal, cell.declared.key] = "guilty"
    for wrong in verdict.wrong:
        words[wrong.entry.ordinal, wrong.declared.key] = "guilty"
    kinds = {entry.ordinal: entry.record.kind for entry in verdict.shadows.document.entries}
    return Marks.of(words, kinds)

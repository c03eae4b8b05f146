"""Formulas spelled as the trace prints its kinds and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.numerics.digits import fixed, scientific
from ...report.records import Record

_CALL = r"\((?:[^()]|\([^()]*+\))*+\)"
_REFERENCE = re.compile(rf"(?<![\w.'\"])([A-Za-z_]\w*)((?:{_CALL})?)((?:\.[A-Za-z_]\w*)?)")
_GIVEN = re.compile(r"\w+(?==)")


def printed_formula(expression: str, record: type[Record], classes: Mapping[str, Any]) -> str:
    """The expression with kinds and keys spelled as the trace prints them."""
    seen = (*next(iter(classes.values())).fields, *record.fields)
    own: dict[str, str] = {declared.attribute: declared.key for declared in seen}

    def spelled(match: re.Match[str]) -> str:
        name, call, attribute = match.groups()
        call = _REFERENCE.sub(spelled, call)
        if name not in classes:
            function = match.string.startswith("(", match.end(1))
            return (name if function else own.get(name, name)) + call + attribute
        keys = {declared.attribute: declared.key for declared in classes[name].fields}
        given = _GIVEN.sub(lambda match: f"{keys.get(match[0], match[0])}", call)
        key = f".{keys.get(attribute[1:], attribute[1:])}" if attribute else ""
        return f"{classes[name].kind}{given}{key}"

    return _REFERENCE.sub(spelled, expression)


def like(text: str, value: float) -> str:
    """A value with as many digits as the text has, in its form."""
    mantissa, mark, _ = text.partition("e")
    digits = len(mantissa.partition(".")[2]) if text[-1].isdigit() else 12
    return scientific(value, digits) if mark else fixed(value, digits)

"""A verdict as one JSON object."""

from __future__ import annotations

from typing import Any

from ...report.json_values import json_text
from .facts import Facts


def json(told: Facts) -> str:
    """All facts; sizes of errors are texts of two digits, numbers are as they were printed."""
    return json_text(_plain(told)) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key.replace("_", "-"): _plain(one) for key, one in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value

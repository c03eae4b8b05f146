"""The table of forms: what asks for each, and nothing asks for two."""

from typing import Any

import pytest

from llm_trace.report.outputs import FORMS


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"format": "text", "style": "canonical", "report": False}, []),
        ({"format": "jsonl"}, ["jsonl"]),
        ({"format": "text", "style": "rust", "report": False}, ["rust"]),
        ({"report": True}, ["report"]),
        ({"format": "jsonl", "style": "rust", "report": True}, ["jsonl", "rust", "report"]),
        ({"report": None, "trace": True}, []),
    ],
)
def test_options_ask_for_forms(options: dict[str, Any], asked: list[str]) -> None:
    assert [name for name, form in FORMS.items() if form.asked(options)] == asked


def test_names_options_and_endings_are_each_forms_own() -> None:
    assert [form.name for form in FORMS.values()] == [*FORMS]
    assert len({form.option for form in FORMS.values()}) == len(FORMS)
    assert len({form.ending for form in FORMS.values()}) == len(FORMS)
    assert [name for name, form in FORMS.items() if form.of_original] == ["rust", "report"]

"""Right ports of fixtures drawn at random, whole or in parts, in any precision and form."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from llm_trace.core.numerics.digits import fixed
from llm_trace.errors import LlmTraceError
from llm_trace.report.records import Field
from llm_trace.tools.formulas.document import Entry
from llm_trace.traces import entries

from ..traces.drawing import fixtures
from .porting import BITS, Port, guilty_kinds, judge

ENTRIES = {name: entry for name, entry in entries().items() if not entry.trains}
FORMS: list[Callable[[float], str]] = [fixed, repr, "{:.9g}".format, "{:.4f}".format]


def normal(fixture: Any, random: np.random.Generator) -> Any:
    """The same sizes with ordinary numbers."""
    drawn = {
        name: random.normal(size=np.shape(getattr(fixture, name)))
        for name, kind in fixture.specs.items()
        if isinstance(getattr(fixture, name), np.ndarray) and not getattr(kind, "positive", False)
    }
    return fixture.replace(**drawn)


def ported(command: str, fixture: Any, dtype: str) -> Port | None:
    """The port, None where the trace refuses the numbers or has formulas only for others."""
    try:
        port = Port(command, fixture, dtype)
        port.text()
    except (LlmTraceError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return port


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    command=st.sampled_from([*ENTRIES]),
    data=st.data(),
    dtype=st.sampled_from([*BITS]),
    form=st.sampled_from(FORMS),
    part=st.sampled_from([1.0, 1.0, 0.5, 0.25]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_right_port_is_blamed_for_nothing(
    command: str,
    data: st.DataObject,
    dtype: str,
    form: Callable[[float], str],
    part: float,
    seed: int,
) -> None:
    random = np.random.default_rng(seed)
    fixture = data.draw(fixtures(ENTRIES[command]))
    assume(fixture is not None)
    if seed % 2:
        try:
            fixture = normal(fixture, random)
        except LlmTraceError:
            assume(False)
    port = ported(command, fixture, dtype)
    assume(port is not None)
    assert port is not None
    told: dict[tuple[int, str], bool] = {}

    def keep(entry: Entry, declared: Field) -> bool:
        place = entry.ordinal, declared.attribute
        return told.setdefault(place, bool(random.random() < part))

    text = port.text(form, keep)
    assume(text.count("\n") > 1)
    verdict = judge(port, text, dtype)
    blamed = guilty_kinds(verdict), [one.declared.key for one in verdict.wrong]
    assert blamed == (set(), [])

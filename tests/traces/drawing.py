"""Fixtures drawn at random: odd names, repeated values, extents of zero and one."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from llm_trace.errors import LlmTraceError
from llm_trace.fixtures.kinds import (
    Choice,
    Indices,
    Integer,
    Integers,
    Kind,
    Real,
    Reals,
    Text,
    Words,
)
from llm_trace.traces import Entry

_REALS = st.sampled_from(
    [0.0, -0.0, 0.5, 0.5, 1.0, 1.0 + 1e-13, -1.0, 2.0, 1e-13, -3e-14, 0.1, 7.25, -40.0, 1e3]
)
_ODD = ["none", "true", "nan", "-inf", "1.5", "[1]", "a=b", "a|b", '"', '"x"', '"x', "x\\", "\\n"]
_ODD += ["{}", "#", "<b>", "'", "TRACE", "scalar", "2x3", "%s", "{0.0.0}", "a*b", "-", "--", "."]
_WORD = st.one_of(st.sampled_from(_ODD), st.text("az09\"'\\=|[]{}<>#&;:-_.*%", min_size=1))
_LIST = st.one_of(_WORD, st.sampled_from(["none", "the", "a", '"q"']))


@st.composite
def fixtures(draw: st.DrawFn, entry: Entry) -> Any:
    """A fixture of the trace, or None where what was drawn is refused."""
    kind = entry.load().fixture
    specs: dict[str, Kind] = dict(kind.specs)
    default = entry.checked()
    extents = dict(default.extents)
    if draw(st.booleans()):
        extents = {
            name: tuple(draw(st.integers(0, 3)) for _ in shape)
            if not name.startswith("...")
            else tuple(draw(st.lists(st.integers(0, 2), max_size=2)))
            for name, shape in extents.items()
        }
    kept = draw(st.sets(st.sampled_from([*specs])))
    values = {
        name: drawn
        for name, spec in specs.items()
        if extents != default.extents or name not in kept
        if (drawn := _drawn(draw, spec, getattr(default, name), extents)) is not _KEPT
    }
    try:
        return default.replace(**values)
    except LlmTraceError:
        return None


_KEPT = object()


def _drawn(draw: st.DrawFn, spec: Kind, default: Any, extents: dict[str, Any]) -> Any:
    shape = [extent for name in spec.shape.split() for extent in extents.get(name, (1,))]
    size = int(np.prod(shape, dtype=int))
    if spec.optional and draw(st.booleans()):
        return None
    match spec:
        case Reals():
            items = draw(st.lists(_REALS, min_size=size, max_size=size))
            return np.reshape(np.abs(items) if spec.positive else items, shape)
        case Real():
            value = draw(_REALS)
            return abs(value) if spec.positive else value
        case Words():
            return tuple(draw(st.lists(_LIST, min_size=size, max_size=size)))
        case Choice():
            return draw(st.sampled_from(spec.choices))
        case Text():
            return draw(_WORD)
        case Indices():
            below = (extents.get(spec.below) or (1,))[0]
            index = st.integers(0, max(below - 1, 0))
            return tuple(draw(st.lists(index, min_size=size, max_size=size)))
        case Integers():
            whole = st.integers(spec.least, spec.least + 4)
            return tuple(draw(st.lists(whole, min_size=size, max_size=size, unique=True)))
        case Integer():
            return draw(st.sampled_from([default, default, spec.least, spec.least + 1]))
    return _KEPT

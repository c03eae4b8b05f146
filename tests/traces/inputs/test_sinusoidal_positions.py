"""Positions against the chapter, the standard library and the angle-addition formulas."""

import math
from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.nn import positions as layer
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.inputs import sinusoidal_positions
from llm_trace.traces.inputs.sinusoidal_positions import (
    FixtureRecord,
    Frequency,
    Position,
    Recurrence,
    Rotation,
    ShiftedPair,
    SinusoidalPositionsFixture,
    Unpaired,
)

from ...known import close, forward, table
from ..proverb_data import of, records

COMMAND = "sinusoidal-positions"


def rows(found: list[Any], name: str) -> Array:
    return np.array([getattr(record, name) for record in found])


def embeddings(tokens: int, width: int) -> dict[str, Any]:
    return {"embeddings": np.zeros((tokens, width)), "tokens": None}


def test_positions_and_inputs_are_the_chapters() -> None:
    found = records(COMMAND)
    expected = forward()
    places = of(Position, found)
    assert close(rows(places, "encoding"), expected["P"])
    assert close(rows(places, "input"), expected["H0"])
    assert close(rows(places, "embedding"), expected["E_seq"])
    (sizes,) = of(FixtureRecord, found)
    shapes = [[*map(str, sizes.position_shape)], [*map(str, sizes.input_shape)]]
    assert shapes == [row[1:] for row in table(9)[2:]]


@pytest.mark.parametrize("width", [1, 2, 5, 6, 16])
def test_features_are_sines_and_cosines_of_their_frequency(width: int) -> None:
    found = records(COMMAND, **embeddings(9, width))
    for frequency in of(Frequency, found):
        pair = frequency.feature // 2
        assert frequency.frequency == pytest.approx(10000 ** (-2 * pair / width))
        assert frequency.function == ("sin", "cos")[frequency.feature % 2]
    for place in of(Position, found):
        expected = [
            (math.sin, math.cos)[j % 2](place.position * 10000 ** (-2 * (j // 2) / width))
            for j in range(width)
        ]
        assert place.encoding == pytest.approx(expected, abs=1e-14)


def test_position_zero_is_sine_zero_and_cosine_one() -> None:
    assert of(Position, records(COMMAND))[0].encoding.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("shift", [0, 1, 3, 1000])
@pytest.mark.parametrize("width", [2, 5, 8])
def test_a_shift_turns_every_complete_pair(width: int, shift: int) -> None:
    found = records(COMMAND, shift=shift, **embeddings(11, width))
    pairs = of(ShiftedPair, found)
    assert len(pairs) == 11 * (width // 2)
    assert all(pair.agrees for pair in pairs)
    encodings = rows(of(Position, found), "encoding")
    for pair in pairs:
        later = pair.position + shift
        if later < 11:
            there = encodings[later, 2 * pair.pair : 2 * pair.pair + 2]
            assert pair.pair_there.tolist() == there.tolist()
    for rotation in of(Rotation, found):
        assert rotation.cosine**2 + rotation.sine**2 == pytest.approx(1.0)


def test_a_wrong_rotation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinusoidal_positions, "sin", lambda x: -np.sin(x))
    found = of(ShiftedPair, records(COMMAND))
    assert not any(pair.agrees for pair in found)


def test_only_an_odd_width_leaves_a_sine_alone() -> None:
    (alone,) = of(Unpaired, records(COMMAND))
    assert (alone.feature, alone.at_zero, alone.one_factor) == (4, 0.0, False)
    assert alone.after_shift == pytest.approx(math.sin(3 * 10000**-0.8))
    assert of(Unpaired, records(COMMAND, shift=0))[0].one_factor
    assert of(Unpaired, records(COMMAND, **embeddings(7, 6))) == []
    (sizes,) = of(FixtureRecord, records(COMMAND, **embeddings(7, 6)))
    assert sizes.unpaired_feature is None


def test_a_repeated_embedding_meets_two_positions() -> None:
    (recurrence,) = of(Recurrence, records(COMMAND))
    assert (recurrence.earlier, recurrence.position, recurrence.token) == (0, 3, "a")
    assert not recurrence.inputs_equal


def test_positions_that_are_all_alike_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinusoidal_positions, "sinusoidal", np.zeros_like)
    assert of(Recurrence, records(COMMAND))[0].inputs_equal


def test_the_layer_and_the_trace_agree() -> None:
    expected = rows(of(Position, records(COMMAND)), "encoding")
    assert layer.sinusoidal_positions(7, 5, 10000.0).tobytes() == expected.tobytes()


def test_wrong_fixtures_end_in_one_line() -> None:
    for base in (0.0, -1.0):
        with pytest.raises(FixtureError, match="base: expected a positive number"):
            records(COMMAND, base=base)
    with pytest.raises(FixtureError, match="base: expected one that gives finite angles"):
        records(COMMAND, base=5e-324, **embeddings(3, 100))
    with pytest.raises(FixtureError, match="shift: expected at most"):
        records(COMMAND, shift=1 << 63)
    with pytest.raises(FixtureError, match="tokens: expected shape tokens=7, found 1"):
        SinusoidalPositionsFixture(tokens=("a",))


@pytest.mark.parametrize("shape", [(0, 5), (7, 0), (1, 1)])
def test_empty_and_single_extents(shape: tuple[int, int]) -> None:
    found = records(COMMAND, **embeddings(*shape))
    assert len(of(Position, found)) == shape[0]

"""The PyTorch example: every bit that the reference holds, and what changes with other numbers."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llm_trace.core.errors import OutOfRange
from llm_trace.fixtures.errors import FixtureError
from llm_trace.fixtures.reading import read_fixture
from llm_trace.fixtures.showing import toml
from llm_trace.traces.recurrent.torch_rnn.fixture import NAMES, TorchRNNFixture
from llm_trace.traces.recurrent.torch_rnn.records import (
    Draw,
    FixtureRecord,
    Gradient,
    Loss,
    Parameter,
    Prediction,
    Reference,
    State,
)

from ...known import torch_example
from ..proverb_data import column, of, records

KNOWN = torch_example()


def hexadecimal(values: list[float]) -> list[str]:
    return [struct.pack(">f", value).hex() for value in values]


def test_the_weights_are_pytorchs_bits() -> None:
    found = records("torch-rnn")
    drawn = of(Draw, found)
    assert [word for draw in drawn for word in draw.words] == KNOWN["mt19937_first12"][:10]
    for name, key in zip(NAMES, KNOWN["weights_hex"], strict=True):
        mine = [draw for draw in drawn if draw.parameter == name]
        bits = [pattern for draw in mine for pattern in draw.bits]
        assert bits == KNOWN["weights_hex"][key] != KNOWN["weights_hex_two_rounding_variant"][key]
        assert column(mine, "values").tolist() == KNOWN["weights"][key]
    bounds = [repr(parameter.bound) for parameter in of(Parameter, found)]
    assert bounds == [KNOWN["bound_rnn"], KNOWN["bound_rnn"], KNOWN["bound_linear"]]


def test_the_pass_forward_and_back_is_pytorchs_bits() -> None:
    found, torch = records("torch-rnn"), KNOWN["torch"]
    states = of(State, found)
    assert [state.bits for state in states] == [hexadecimal(row) for row in torch["h"]]
    assert column(states, "state").tolist() == torch["h"]
    (prediction,), (loss,) = of(Prediction, found), of(Loss, found)
    assert prediction.bits == hexadecimal([torch["prediction"]])
    assert loss.bits == hexadecimal([torch["loss"]])[0]
    for name, key in zip(NAMES, torch["grads_hex"], strict=True):
        rows = [record for record in of(Gradient, found) if record.parameter == name]
        assert [bits for row in rows for bits in row.bits] == torch["grads_hex"][key]
        assert column(rows, "gradient").tolist() == torch["grads"][key]


def test_the_pass_in_float64_is_the_references() -> None:
    found, known = records("torch-rnn"), KNOWN["float64_forward_of_float32_weights"]
    (prediction,), (loss,) = of(Prediction, found), of(Loss, found)
    assert column(of(State, found), "float64") == pytest.approx(np.array(known["h"]), rel=1e-14)
    assert prediction.float64 == pytest.approx([known["prediction"]], rel=1e-14)
    assert loss.float64 == pytest.approx(known["loss"], rel=1e-14)


def test_the_chapter_prints_these_digits() -> None:
    found = records("torch-rnn")
    assert [state.printed for state in of(State, found)] == [
        ["0.0128", "0.122"],
        ["0.00930", "0.0915"],
        ["0.0384", "0.314"],
    ]
    (prediction,), (loss,) = of(Prediction, found), of(Loss, found)
    assert (prediction.printed, loss.printed) == (["-0.144"], "0.208")


def wide(**changed: Any) -> dict[str, Any]:
    """Two sequences of five steps, widths 3, 4 and 2."""
    rng = np.random.default_rng(0)
    return {
        "inputs": rng.normal(size=(2, 5, 3)),
        "initial_state": rng.normal(size=(2, 4)),
        "target": rng.normal(size=(2, 2)),
        **changed,
    }


@pytest.mark.parametrize("seed", [0, 6, 2**32 - 1])
def test_single_precision_follows_double_precision(seed: int) -> None:
    found = records("torch-rnn", **wide(seed=seed))
    pairs = [
        *((record.state, record.float64) for record in of(State, found)),
        *((record.prediction, record.float64) for record in of(Prediction, found)),
        *((record.gradient, record.float64) for record in of(Gradient, found)),
    ]
    assert len(pairs) == 2 * 5 + 2 + 4 + 4 + 2
    for single, double in pairs:
        assert single == pytest.approx(double, rel=1e-5, abs=2e-6)
    (loss,) = of(Loss, found)
    assert loss.loss == pytest.approx(loss.float64, rel=1e-5)
    (fixture,) = of(FixtureRecord, found)
    drawn = sum(len(draw.words) for draw in of(Draw, found))
    assert fixture.parameter_count == drawn == 4 * 3 + 4 * 4 + 2 * 4


def test_other_seeds_draw_other_weights_and_the_same_seed_the_same() -> None:
    first, again, other = (
        [bits for draw in of(Draw, records("torch-rnn", seed=seed)) for bits in draw.bits]
        for seed in (6, 6, 7)
    )
    assert first == again
    assert not {*first} & {*other}


@pytest.mark.parametrize(
    ("seed", "fractions"),  # what torch.rand(2) is after torch.manual_seed(seed)
    [
        (6, [0.5721975564956665, 0.5538755059242249]),
        (2**32 + 6, [0.5721975564956665, 0.5538755059242249]),
        (-1, [0.9937993884086609, 0.5713063478469849]),
        (2**64 - 1, [0.9937993884086609, 0.5713063478469849]),
        (-(2**63), [0.49625658988952637, 0.7682217955589294]),
        (2**63, [0.49625658988952637, 0.7682217955589294]),
        (2**31, [0.9127365350723267, 0.8284304141998291]),
    ],
)
def test_a_seed_is_what_pytorch_makes_of_it(seed: int, fractions: list[float]) -> None:
    found = records("torch-rnn", seed=seed)
    assert of(Draw, found)[0].fractions.tolist() == fractions
    assert of(FixtureRecord, found)[0].seed == seed


def test_words_are_numpys_whose_legacy_generator_is_seeded_alike() -> None:
    drawn = of(Draw, records("torch-rnn", **wide(seed=20)))
    words = [word for draw in drawn for word in draw.words]
    numbers = np.random.RandomState(20).randint(0, 2**32, len(words), dtype=np.uint32)
    assert words == numbers.tolist()
    bound = 0.5  # 1 / sqrt(4)
    assert all(np.abs(draw.values).max() <= bound for draw in drawn)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"seed": 2**64},
            "seed: expected a whole number from -9223372036854775808 to 18446744073709551615, "
            "found 18446744073709551616",
        ),
        (
            {"seed": -(2**63) - 1},
            "seed: expected a whole number that is at least -9223372036854775808, found ",
        ),
        (
            {"seed": 7, "reference_output": np.zeros((1, 2, 2))},
            "reference_output: expected shape sequences=1 x steps=3 x hidden=2, found 1 x 2 x 2",
        ),
        (
            {"reference_loss": 1e39},
            "reference_loss: expected numbers within the range of float32, found 1e+39",
        ),
        ({"initial_state": np.zeros((1, 0))}, "initial_state: expected at least one value in"),
        ({"target": np.zeros((1, 0))}, "target: expected at least one value in every row"),
        ({"inputs": np.zeros((1, 0, 2))}, "inputs: expected from 1 to 4096 steps, found 0"),
        ({"target": np.array([[1e39]])}, "target: expected numbers within the range of float32"),
        ({"target": np.zeros((2, 1))}, "target: expected shape sequences=1 x outputs, found 2 x 1"),
        (
            {"initial_state": np.zeros((1, 3000))},
            "steps hidden hidden: expected a result of at most",
        ),
    ],
)
def test_wrong_fixtures_end_in_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError) as refused:
        records("torch-rnn", **changed)
    assert str(refused.value).startswith(message)


def test_a_loss_beyond_single_precision_is_refused() -> None:
    with pytest.raises(OutOfRange, match="RNN loss: expected numbers within the range of"):
        records("torch-rnn", target=np.array([[1e30]]))


# What PyTorch 2.13.0 for CPUs gave for the default numbers on an AMD processor with AVX-512, where
# another run gave the defaults; how far that is away was counted there, from the bits.
OTHER_RUN: dict[str, Any] = {
    "reference_output": [
        [
            [0.012800706550478935, 0.12181072682142258],
            [0.009299000725150108, 0.09145613759756088],
            [0.03837886080145836, 0.3140568435192108],
        ]
    ],
    "reference_prediction": [[-0.14446969330310822]],
    "reference_loss": 0.20767058432102203,
    "reference_weight_ih_l0_grad": [
        [-0.02359894849359989, 0.021755751222372055],
        [0.11489548534154892, 0.054210834205150604],
    ],
    "reference_weight_hh_l0_grad": [
        [0.0006163812940940261, 0.005703117232769728],
        [0.0038074960466474295, 0.0370427668094635],
    ],
    "reference_head_weight_grad": [[-0.0247340127825737, -0.2024001181125641]],
}
OTHER_RUN_IS_OFF = {
    "output": [0, 0, 0, 1, 0, 1],
    "prediction": [-1],
    "loss": [3],
    "weight_ih_l0.grad": [-2, -1, 0, 0],
    "weight_hh_l0.grad": [-1, -3, 0, 0],
    "head.weight.grad": [-1, -2],
}


def compared(**fields: Any) -> dict[str, Reference]:
    arrays = {name: np.array(value) if name != "seed" else value for name, value in fields.items()}
    return {record.tensor: record for record in of(Reference, records("torch-rnn", **arrays))}


def test_the_default_reference_is_pytorchs_run_and_no_bit_is_off() -> None:
    found, torch = compared(), KNOWN["torch"]
    known = {
        **dict(zip(NAMES, KNOWN["weights_hex"].values(), strict=True)),
        "output": hexadecimal([value for row in torch["h"] for value in row]),
        "prediction": hexadecimal([torch["prediction"]]),
        "loss": hexadecimal([torch["loss"]]),
        **{
            f"{name}.grad": bits
            for name, bits in zip(NAMES, torch["grads_hex"].values(), strict=True)
        },
    }
    assert {tensor: record.bits for tensor, record in found.items()} == known
    for record in found.values():
        assert record.off == [0] * len(known[record.tensor])
        assert record.largest == 0


def test_another_run_is_off_by_what_was_counted_in_its_bits() -> None:
    found = compared(**OTHER_RUN)
    assert {name: found[name].off for name in OTHER_RUN_IS_OFF} == OTHER_RUN_IS_OFF
    for name, off in OTHER_RUN_IS_OFF.items():
        assert found[name].largest == max(map(abs, off))
        given = np.array(OTHER_RUN["reference_" + name.replace(".", "_")])
        values = found[name].values
        assert values is not None
        assert np.array_equal(values.reshape(given.shape), given)


def test_what_is_not_given_is_no_reference_as_soon_as_one_is() -> None:
    found = compared(reference_loss=0.2)
    absent = {tensor for tensor, record in found.items() if record.off is None}
    assert absent == {*found} - {"loss"}
    (off,) = found["loss"].off or ()
    steps, at = 0, np.float32(0.2)
    while at != np.float32(KNOWN["torch"]["loss"]) and steps < off:
        at, steps = np.nextafter(at, np.float32(1.0)), steps + 1
    assert (steps, at) == (off, np.float32(KNOWN["torch"]["loss"]))


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 7},
        {"inputs": [[[0.2, -0.1], [0.0, 0.3], [0.4, 0.2]]]},
        {"initial_state": [[0.0, 0.1]]},
        {"initial_state": [[0.0, 0.0, 0.0]]},
        {"target": [[0.25]]},
        wide(),
    ],
)
def test_other_numbers_have_no_default_reference(changed: dict[str, Any]) -> None:
    found = compared(**changed)
    assert [*found] == [*compared()]
    for record in found.values():
        assert (record.values, record.bits, record.off, record.largest) == (None,) * 4


def test_the_same_numbers_given_again_keep_it() -> None:
    defaults = TorchRNNFixture()
    again = {name: getattr(defaults, name) for name in ("seed", "inputs", "target")}
    assert compared(**again)["output"].largest == 0


def test_other_numbers_with_a_reference_are_compared() -> None:
    plain = of(State, records("torch-rnn", **wide()))
    output = np.array([state.state for state in plain]).reshape(2, 5, 4)
    beyond = np.nextafter(output.astype(np.float32), np.float32(2.0)).astype(np.float64)
    found = compared(**wide(reference_output=beyond))
    assert found["output"].off == [-1] * 40
    assert found["loss"].off is None


def test_a_fixture_that_is_shown_keeps_its_references(tmp_path: Path) -> None:
    file = tmp_path / "shown.toml"
    for fields in ({}, {"seed": 7}, {"seed": 7, "reference_loss": 0.25}):
        fixture = TorchRNNFixture(**fields)
        text = "".join(toml(fixture))
        file.write_text(text, encoding="ascii")
        again = read_fixture(TorchRNNFixture, str(file))
        assert "".join(toml(again)) == text

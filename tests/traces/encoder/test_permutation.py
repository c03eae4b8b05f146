"""What a reordering does to an encoder, and that the verdicts are found and not written down."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Mask, Tensor, add, constant
from llm_trace.core.nn.encoder import MLP, MLPPass
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.encoder import permutation
from llm_trace.traces.encoder.permutation import (
    ExperimentRecord,
    PermutationFixture,
    RepeatedToken,
    Row,
    Stage,
)

from ...known import close, forward
from ..proverb_data import of, records

EXPECTED = {
    "tokens-alone": True,
    "positions-stay": False,
    "positions-move": True,
    "mask-stays": False,
    "mask-moves": True,
}


def verdicts(**fields: Any) -> dict[str, bool]:
    found = of(ExperimentRecord, records("permutation", **fields))
    return {record.experiment: record.equivariant for record in found}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_order_is_lost_without_positions_and_mask_and_kept_with_either(
    norm: str, blocks: int
) -> None:
    assert verdicts(norm=norm, blocks=blocks) == EXPECTED


def test_differences_are_rounding_where_equivariant_and_large_where_not() -> None:
    for record in of(ExperimentRecord, records("permutation")):
        assert record.largest_difference == record.scientific
        if record.equivariant:
            assert record.largest_difference < 1e-14
        else:
            assert record.largest_difference > 1.0


def test_the_same_order_changes_nothing_at_all() -> None:
    found = records("permutation", permutation=tuple(range(7)))
    assert all(record.equivariant for record in of(ExperimentRecord, found))
    assert all(record.same_bits for record in of(Stage, found))
    assert [record.largest_difference for record in of(Row, found)] == [0.0] * 35


def test_exchanging_equal_tokens_follows_them_unless_positions_or_a_mask_stay() -> None:
    assert verdicts(permutation=(3, 1, 2, 0, 4, 5, 6)) == EXPECTED


def test_rows_are_those_of_the_token_that_moved() -> None:
    found = of(Row, records("permutation"))
    order, ids = (6, 0, 4, 1, 3, 2, 5), (0, 1, 2, 0, 3, 4, 5)
    alone = [record for record in found if record.experiment == "tokens-alone"]
    assert [record.source for record in alone] == list(order)
    assert [record.token_id for record in alone] == [ids[source] for source in order]
    for record in alone:
        assert np.allclose(record.output, record.expected, rtol=0, atol=1e-14)


def test_row_by_row_stages_of_moved_rows_keep_their_bits() -> None:
    for record in of(Stage, records("permutation")):
        if record.experiment == "tokens-alone" and record.stage in ("input", "first-norm"):
            assert record.same_bits
        assert record.equivariant == (record.largest_difference <= 1e-12)


def test_every_stage_of_an_equivariant_experiment_is_equivariant() -> None:
    for record in of(Stage, records("permutation", blocks=2)):
        if EXPECTED[record.experiment]:
            assert record.equivariant
        elif record.stage == "weights":
            assert not record.equivariant


def test_a_repeated_token_is_told_apart_by_positions_or_a_mask_only() -> None:
    found = of(RepeatedToken, records("permutation"))
    assert [(r.experiment, r.first, r.second, r.same_bits) for r in found] == [
        ("tokens-alone", 0, 3, True),
        ("positions-stay", 0, 3, False),
        ("positions-move", 0, 3, False),
        ("mask-stays", 0, 3, False),
        ("mask-moves", 0, 3, False),
    ]


def test_the_expected_rows_with_positions_are_the_chapters() -> None:
    expected = np.array(forward("encoder", "LN_final", "H_enc"))
    found = [r for r in of(Row, records("permutation")) if r.experiment == "positions-move"]
    assert close([record.expected for record in found], expected[[6, 0, 4, 1, 3, 2, 5]])


def test_an_mlp_that_knows_its_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbered(self: MLP, x: Tensor) -> MLPPass:
        found = original(self, x)
        rows = np.broadcast_to(np.arange(x.shape[0])[:, None], x.shape) * np.arange(x.shape[1])
        return found._replace(output=add(found.output, constant(1e-6 * rows)))

    original = MLP.__call__
    monkeypatch.setattr(MLP, "__call__", numbered)
    assert not any(verdicts().values())


def test_a_mask_that_hides_nothing_keeps_equivariance(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_mask(tokens: int) -> Mask:
        return np.ones((tokens, tokens), dtype=np.bool_)

    monkeypatch.setattr(permutation, "causal", open_mask)
    assert verdicts()["mask-stays"]


def test_a_mask_that_is_moved_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmoved(rows: list[int], columns: list[int]) -> Any:
        return original(range(len(rows)), range(len(columns)))

    original = np.ix_
    monkeypatch.setattr(np, "ix_", unmoved)
    assert verdicts() == EXPECTED | {"mask-moves": False}


def test_the_tolerance_decides() -> None:
    assert not any(verdicts(tolerance=0.0).values())
    assert all(verdicts(tolerance=1e3).values())


def test_one_token_has_one_order() -> None:
    found = records("permutation", ids=(2,), permutation=(0,))
    assert all(record.equivariant for record in of(ExperimentRecord, found))
    assert of(RepeatedToken, found) == []


def test_other_lengths_compute() -> None:
    ids = tuple(int(token) for token in np.random.default_rng(1).integers(0, 9, 12))
    order = tuple(int(at) for at in np.random.default_rng(2).permutation(12))
    assert verdicts(ids=ids, permutation=order) == EXPECTED


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"permutation": (0, 1, 2, 3, 4, 5, 5)}, r"permutation\[6\]: expected every position once"),
        ({"permutation": (0, 1, 2)}, "permutation: expected shape tokens=7"),
        ({"permutation": (0, 1, 2, 3, 4, 5, 7)}, r"permutation\[6\]: expected a whole number from"),
        ({"blocks": 0}, "blocks: expected a whole number that is at least 1"),
        ({"blocks": 1 << 40}, "blocks: expected at most"),
        ({"tolerance": -1.0}, "tolerance: expected a number from 0 up"),
        ({"norm": "no"}, "norm: expected one of"),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        records("permutation", **fields)


def test_the_default_moves_every_token_but_keeps_a_permutation() -> None:
    order: Array = np.array(PermutationFixture().permutation)
    assert sorted(order) == list(range(7))
    assert (order != np.arange(7)).sum() >= 6

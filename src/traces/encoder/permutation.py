"""The same tokens are read in their order and in another. Without positions and without a mask the
output rows only change places (permutation equivariance): row p of the second output is row
permutation[p] of the first, up to the rounding of sums that take their terms in another order.
Positions that stay where they are end this, and so does a causal mask; both can be carried along
with the tokens, and then the rows only change places again.

Each experiment runs both orders and compares them, stage by stage: the norms, the MLP and the
residual sums work inside a row, attention's weights change places on both axes.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5 (arXiv:1706.03762).
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Mask, Tensor, gather_rows
from ...core.nn.attention import causal
from ...core.nn.encoder import BlockPass, StackPass
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import indices, integer, real
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Real, Reals, ScientificReal, ShortestReal, Word, YesNo
from .. import _proverb
from .._probes import same_bits
from .._rows import forward_rows
from ._encoder import NormedEncoderFixture, build, largest_difference


class PermutationFixture(NormedEncoderFixture):
    """A stack, the tokens that it reads, and another order for them."""

    computed = ("tokens tokens", "tokens hidden", "tokens model", "tokens score", "tokens value")

    ids: tuple[int, ...] = indices(_proverb.TOKEN_IDS, "tokens", "vocabulary", "The tokens")
    permutation: tuple[int, ...] = indices(
        (6, 0, 4, 1, 3, 2, 5), "tokens", "tokens", "Which token comes to each position"
    )
    blocks: int = integer(1, "Blocks of the stack, all with the same numbers")
    tolerance: float = real(1e-12, "Largest difference that still counts as equal")


class Experiment(NamedTuple):
    """Two readings, and what carries from the first to the second."""

    name: str
    positions: str
    mask: str
    before: StackPass
    after: StackPass


def compute(fixture: PermutationFixture) -> tuple[Experiment, ...]:
    """Run every experiment. Raises FixtureError where the permutation leaves a position out."""
    if fixture.tolerance < 0.0:
        raise FixtureError("tolerance", "a number from 0 up", str(fixture.tolerance))
    order = fixture.permutation
    for position, source in enumerate(order):
        if source in order[:position]:
            where = f"permutation[{position}]"
            raise FixtureError(where, "every position once", f"a second {source}")
    encoder = build(fixture, blocks=fixture.blocks)
    plain, positioned = encoder.embedded(fixture.ids), encoder.input(fixture.ids)
    reordered = encoder.input([fixture.ids[source] for source in order])
    mask = causal(len(fixture.ids))
    moved_mask = mask[np.ix_(order, order)]
    moved, moved_positioned = (gather_rows(rows, ids=order) for rows in (plain, positioned))

    def experiment(
        name: str,
        positions: str,
        mask: str,
        rows: tuple[Tensor, Tensor],
        visible: tuple[Mask | None, Mask | None] = (None, None),
    ) -> Experiment:
        before, after = (encoder(h, seen) for h, seen in zip(rows, visible, strict=True))
        return Experiment(name, positions, mask, before, after)

    none, stay, move = "none", "stay", "move"
    return (
        experiment("tokens-alone", none, none, (plain, moved)),
        experiment("positions-stay", stay, none, (positioned, reordered)),
        experiment("positions-move", move, none, (positioned, moved_positioned)),
        experiment("mask-stays", none, stay, (plain, moved), (mask, mask)),
        experiment("mask-moves", none, move, (plain, moved), (mask, moved_mask)),
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The tokens, and the order in which they are read the second time."""

    name: Word = field("what these numbers are called")
    ids: Ints = field("the tokens in their order")
    permutation: Annotated[Ints, "tokens"] = field(
        "at position p of the second reading stands token permutation[p]"
    )
    blocks: Int = field("blocks of the stack, which ends in a LayerNorm")
    norm: Word = field("pre or post: where the LayerNorms of a block stand")
    tolerance: ShortestReal = field(
        "largest difference that still counts as equal", "fixture.tolerance"
    )

    @property
    def tokens(self) -> int:
        """How many are read, in both orders."""
        return len(self.ids)


class Stage(Record):
    """One stage of both readings, compared after its rows have changed places."""

    experiment: Word = key("which two readings")
    block: Int = key("0-based")
    stage: Word = key("what is compared; `weights` change places on both axes")
    head: Int | None = key("of weights, 0-based", omitted=True)
    largest_difference: Real = field("max |second[p] - first[permutation[p]]|", "scientific")
    scientific: ScientificReal = field("the same; rounding is too small for 12 decimals")
    same_bits: YesNo = field("whether not even the last bit differs")
    equivariant: Flag = field("whether largest-difference <= tolerance")


class Row(Record):
    """One row of the stack's output in both readings."""

    experiment: Word = key("which two readings")
    position: Int = key("p of the second reading, 0-based")
    source: Int = field("where the token stands in the first one", "permutation[position]")
    token_id: Int = field("the token", "ids[source]")
    token: Word | None = field("its word", omitted=True)
    output: Reals = field("row p of the second reading")
    expected: Reals = field("row permutation[p] of the first reading")
    largest_difference: Real = field("between the two", "max(abs(output - expected))")


class ExperimentRecord(Record, kind="EXPERIMENT"):
    """What became of the whole output."""

    experiment: Word = key("which two readings")
    positions: Word = field("none, or sinusoidal: `stay` in place, or `move` with the tokens")
    mask: Word = field("none, or a causal one: `stay` in place, or `move` with the tokens")
    largest_difference: Real = field("over all rows", "max(Row.largest_difference)")
    scientific: ScientificReal = field(
        "the same; rounding is too small for 12 decimals",
        {"not equivariant": "max(Row.largest_difference)"},
    )
    equivariant: Flag = field("whether largest-difference <= tolerance")


class RepeatedToken(Record):
    """A token that stands at two positions of the first reading, and what it became there."""

    experiment: Word = key("whose first reading")
    token_id: Int = key("the token")
    token: Word | None = field("its word", omitted=True)
    first: Int = field("its first position, 0-based")
    second: Int = field("its second position")
    first_output: Reals = field("the output at the first one", "Row(source=first).expected")
    second_output: Reals = field("the output at the second one", "Row(source=second).expected")
    same_bits: YesNo = field("whether nothing tells the two apart")


@trace(
    "permutation",
    version=1,
    source="Week 6",
    shows="what an encoder knows of order",
    fixture=PermutationFixture,
    choices=("norm",),
)
def permutation_trace(
    fixture: PermutationFixture,
) -> Iterator[FixtureRecord | Stage | Row | ExperimentRecord | RepeatedToken]:
    experiments = compute(fixture)
    yield FixtureRecord(
        name=fixture.name,
        ids=fixture.ids,
        permutation=fixture.permutation,
        blocks=fixture.blocks,
        norm=fixture.norm,
        tolerance=fixture.tolerance,
    )
    for experiment in experiments:
        yield from stages(experiment, fixture)
        yield from rows(experiment, fixture)
        yield from repeated_tokens(experiment, fixture)


def stages(experiment: Experiment, fixture: PermutationFixture) -> Iterator[Stage]:
    order = list(fixture.permutation)
    for number, (first, second) in enumerate(
        zip(experiment.before.blocks, experiment.after.blocks, strict=True)
    ):
        found = compared_parts(second)
        for (stage, head), part in compared_parts(first).items():
            expected = part.value[order if head is None else np.ix_(order, order)]
            yield Stage(
                experiment=experiment.name,
                block=number,
                stage=stage,
                head=head,
                same_bits=same_bits(expected, found[stage, head].value),
                **compared(expected, found[stage, head].value, fixture),
            )


def compared_parts(block: BlockPass) -> dict[tuple[str, int | None], Tensor]:
    """What is compared of a block, by stage, and by head where it is a head's weights."""
    heads: dict[tuple[str, int | None], Tensor] = {
        ("weights", number): head.weights for number, head in enumerate(block.attention.heads)
    }
    return {
        ("input", None): block.input,
        ("first-norm", None): block.first_norm.output,
        **heads,
        ("attention", None): block.attention.output,
        ("first-sum", None): block.first_sum,
        ("second-norm", None): block.second_norm.output,
        ("mlp", None): block.mlp.output,
        ("second-sum", None): block.second_sum,
    }


def compared(expected: Array, found: Array, fixture: PermutationFixture) -> dict[str, Any]:
    """How far two arrays are apart, and whether that counts as equal."""
    difference = largest_difference(expected, found)
    return {
        "largest_difference": difference,
        "scientific": difference,
        "equivariant": difference <= fixture.tolerance,
    }


def rows(experiment: Experiment, fixture: PermutationFixture) -> Iterator[Row | ExperimentRecord]:
    """The rows of the output, and what became of all of them."""
    expected = experiment.before.output.value[list(fixture.permutation)]
    found = experiment.after.output.value
    token_ids = [fixture.ids[source] for source in fixture.permutation]
    nodes = {
        "source": fixture.permutation,
        "token_id": token_ids,
        "token": [fixture.token_word(token) for token in token_ids],
        "output": found,
        "expected": expected,
        "largest_difference": [*map(largest_difference, expected, found)],
    }
    yield from forward_rows(Row, nodes, experiment=experiment.name)
    yield ExperimentRecord(
        experiment=experiment.name,
        positions=experiment.positions,
        mask=experiment.mask,
        **compared(expected, found, fixture),
    )


def repeated_tokens(experiment: Experiment, fixture: PermutationFixture) -> Iterator[RepeatedToken]:
    output = experiment.before.output.value
    for token in sorted({*fixture.ids}):
        first, *others = [at for at, found in enumerate(fixture.ids) if found == token]
        if others:
            yield RepeatedToken(
                experiment=experiment.name,
                token_id=token,
                token=fixture.token_word(token),
                first=first,
                second=others[0],
                first_output=output[first],
                second_output=output[others[0]],
                same_bits=same_bits(output[first], output[others[0]]),
            )

"""The same tokens are read in their order and in another. Without positions and without a mask the
output rows only change places (permutation equivariance): row p of the second output is row
permutation[p] of the first, up to the rounding of sums that take their terms in another order.
Positions that stay where they are end this, and so does a causal mask; both can be carried along
with the tokens, and then the rows only change places again.

Each experiment runs both orders and compares them, stage by stage: the norms, the MLP and the
residual sums work inside a row, attention's weights change places on both axes.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5 (arXiv:1706.03762).
"""

from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

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


class Reading(NamedTuple):
    """Rows and the mask under which they are read."""

    rows: Tensor
    visible: Mask | None = None


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
        name: str, positions: str, mask: str, before: Reading, after: Reading
    ) -> Experiment:
        return Experiment(name, positions, mask, encoder(*before), encoder(*after))

    none, stay, move = "none", "stay", "move"
    return (
        experiment("tokens-alone", none, none, Reading(plain), Reading(moved)),
        experiment("positions-stay", stay, none, Reading(positioned), Reading(reordered)),
        experiment("positions-move", move, none, Reading(positioned), Reading(moved_positioned)),
        experiment("mask-stays", none, stay, Reading(plain, mask), Reading(moved, mask)),
        experiment("mask-moves", none, move, Reading(plain, mask), Reading(moved, moved_mask)),
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
        yield verdict(experiment, fixture)
        yield from repeated_tokens(experiment, fixture)


def stages(experiment: Experiment, fixture: PermutationFixture) -> Iterator[Stage]:
    order = list(fixture.permutation)
    for number, (first, second) in enumerate(
        zip(experiment.before.blocks, experiment.after.blocks, strict=True)
    ):
        for stage, part in ROW_STAGES.items():
            if stage == "attention":
                for head, (one, other) in enumerate(
                    zip(first.attention.heads, second.attention.heads, strict=True)
                ):
                    expected = one.weights.value[np.ix_(order, order)]
                    found = other.weights.value
                    yield compared(experiment, fixture, number, "weights", head, expected, found)
            expected, found = part(first).value[order], part(second).value
            yield compared(experiment, fixture, number, stage, None, expected, found)


ROW_STAGES: dict[str, Callable[[BlockPass], Tensor]] = {
    "input": lambda block: block.input,
    "first-norm": lambda block: block.first_norm.output,
    "attention": lambda block: block.attention.output,
    "first-sum": lambda block: block.first_sum,
    "second-norm": lambda block: block.second_norm.output,
    "mlp": lambda block: block.mlp.output,
    "second-sum": lambda block: block.second_sum,
}


def compared(
    experiment: Experiment,
    fixture: PermutationFixture,
    block: int,
    stage: str,
    head: int | None,
    expected: Array,
    found: Array,
) -> Stage:
    difference = largest_difference(expected, found)
    return Stage(
        experiment=experiment.name,
        block=block,
        stage=stage,
        head=head,
        largest_difference=difference,
        scientific=difference,
        same_bits=same_bits(expected, found),
        equivariant=difference <= fixture.tolerance,
    )


def outputs(experiment: Experiment, fixture: PermutationFixture) -> tuple[Array, Array]:
    """What the second output has to be, and what it is."""
    expected = experiment.before.output.value[list(fixture.permutation)]
    return expected, experiment.after.output.value


def rows(experiment: Experiment, fixture: PermutationFixture) -> Iterator[Row]:
    expected, found = outputs(experiment, fixture)
    for position, source in enumerate(fixture.permutation):
        yield Row(
            experiment=experiment.name,
            position=position,
            source=source,
            token_id=fixture.ids[source],
            token=fixture.token_word(fixture.ids[source]),
            output=found[position],
            expected=expected[position],
            largest_difference=largest_difference(expected[position], found[position]),
        )


def verdict(experiment: Experiment, fixture: PermutationFixture) -> ExperimentRecord:
    difference = largest_difference(*outputs(experiment, fixture))
    return ExperimentRecord(
        experiment=experiment.name,
        positions=experiment.positions,
        mask=experiment.mask,
        largest_difference=difference,
        scientific=difference,
        equivariant=difference <= fixture.tolerance,
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

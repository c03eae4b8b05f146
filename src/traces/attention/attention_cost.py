"""Full attention, the same attention in blocks, and a simple recurrent network really run on random
numbers at lengths that double, and what they did is counted from the arrays that came about: each
matrix product (n, k) times (k, m) is n k m multiplications, each elementwise product one an
element. Beside each count stands the formula's value. Softmax, activations, additions and
divisions are not multiplications and not counted.

Comparing all pairs takes T T operations with or without blocks; what blocks save is the arrays of
all scores and weights. A recurrent network takes T steps of fixed cost, but they wait for each
other: CHAIN counts the matrix products of which each needs the one before.

Counts say nothing of time: it depends on the machine, and products inside one array run together.

Sources: Vaswani et al. 2017, section 4 (arXiv:1706.03762); Dao et al. 2022, FlashAttention
(arXiv:2205.14135).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, constant, topology
from ...core.nn.blockwise import BlockStep, blockwise_steps, finished
from ...core.nn.dot_product import AttentionPass
from ...core.nn.parameters import named_parameter
from ...core.nn.rnn import CellPass, ElmanCell
from ...core.nn.splitmix64 import SplitMix64
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import MAX_VALUES, Fixture, integer, real, word
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Real, ScientificReal, Word
from .._heads import named_head

MAX_LENGTHS = 16
MAX_STEPS = 1 << 12  # blocks of one length
MAX_MULTIPLICATIONS = 1 << 28  # by formula, at the longest length


class AttentionCostFixture(Fixture):
    """Lengths and widths; the numbers themselves are random and change no count."""

    name: str = word("doubling-lengths", "What the trace calls these sizes")
    shortest: int = integer(4, "Tokens of the shortest sequence")
    lengths: int = integer(5, "How many lengths, each twice the one before")
    model_width: int = integer(8, "D, features of a token")
    score_width: int = integer(4, "k, features of a query and of a key")
    value_width: int = integer(6, "v, features of a value")
    hidden_width: int = integer(8, "H, features of the recurrent state")
    block: int = integer(4, "B, rows and columns of a block of scores")
    seed: int = integer(6, "Seed of SplitMix64 for inputs and weights, in [-1, 1)", least=0)
    tolerance: float = real(1e-12, "Largest difference of blockwise from full attention")


class Sizes(NamedTuple):
    """What the formulas are made of."""

    T: int
    D: int
    k: int
    v: int
    H: int
    B: int

    @property
    def blocks(self) -> int:
        """Blocks of one axis."""
        return -(-self.T // self.B)

    @property
    def side(self) -> int:
        """Rows of the largest block."""
        return min(self.B, self.T)


class Blocks(NamedTuple):
    """What remains of attention in blocks: its output, and what was counted block by block."""

    output: Array
    steps: int
    multiplications: dict[str, int]  # scores, scaling, rescaling, mixing; recorded is all of them
    elements: dict[str, int]  # of the largest block: scores, exponentials, running


class Run(NamedTuple):
    """All three at one length."""

    attention: AttentionPass
    blocks: Blocks
    recurrent: tuple[CellPass, ...]


class Count(NamedTuple):
    """One number of a run, and what the formula gives."""

    method: str
    part: str
    counted: int
    formula: str
    expected: int


def growth_of(kind: str) -> Any:
    """The field that compares a count with the one before in records of this kind."""
    return field(
        "ratio to the count at half the length; none for the first",
        {"tokens > lengths[0]": f"counted / {kind}(tokens=tokens // 2).counted"},
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and the letters that stand for them in formulas."""

    name: Word = field("what these sizes are called")
    lengths: Ints = field("T, tokens of each sequence")
    model_width: Int = field("D, features of a token")
    score_width: Int = field("k, features of a query and of a key")
    value_width: Int = field("v, features of a value")
    hidden_width: Int = field("H, features of the recurrent state")
    block: Int = field("B, rows and columns of a block of scores")


class Multiplications(Record):
    """How many multiplications one part of a run did."""

    method: Word = key("full, blockwise or recurrent")
    part: Word = key("which arrays were made; total is everything that was recorded")
    tokens: Int = key("T")
    counted: Int = field("from the shapes of the arrays of the run")
    formula: Word = field("in the letters of FIXTURE; N is T / B, rounded up")
    expected: Int = field(
        "what the formula gives",
        {
            "formula == 'T*D*(2*k+v)'": "tokens * model_width * (2 * score_width + value_width)",
            "formula == 'T*T*k'": "tokens * tokens * score_width",
            "formula == 'T*T'": "tokens * tokens",
            "formula == 'T*T*v'": "tokens * tokens * value_width",
            "formula == 'N*T*(v+1)'": "-(-tokens // block) * tokens * (value_width + 1)",
            "formula == 'T*D*H'": "tokens * model_width * hidden_width",
            "formula == 'T*H*H'": "tokens * hidden_width * hidden_width",
            "formula == 'all-parts'": (
                "sum(where(Multiplications(part=every).part != 'total', "
                "Multiplications(part=every).expected, 0))"
            ),
        },
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = growth_of("Multiplications")


class Stored(Record):
    """How many elements one kind of array holds at once."""

    method: Word = key("full, blockwise or recurrent")
    array: Word = key("which; running is the maximum, the sum and the output so far")
    tokens: Int = key("T")
    counted: Int = field("elements of the array, of the largest of all blocks")
    formula: Word = field("in the letters of FIXTURE; S is the smaller of B and T")
    expected: Int = field(
        "what the formula gives",
        {
            "formula == 'T*T'": "tokens * tokens",
            "formula == 'T*H'": "tokens * hidden_width",
            "formula == 'S*S' and tokens < block": "tokens * tokens",
            "formula == 'S*S'": "block * block",
            "formula == 'S*(v+2)' and tokens < block": "tokens * (value_width + 2)",
            "formula == 'S*(v+2)'": "block * (value_width + 2)",
        },
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = growth_of("Stored")


class Chain(Record):
    """The longest run of matrix products of which each needs the one before."""

    method: Word = key("full or recurrent")
    array: Word = key("what is reached: the output, or the last state")
    tokens: Int = key("T")
    counted: Int = field("products on the longest path through the recorded operations")
    formula: Word = field("3 are a projection, scores and mixing")
    expected: Int = field(
        "what the formula gives", {"formula == 'T'": "tokens", "formula == '3'": "3"}
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = growth_of("Chain")


class Exact(Record):
    """Blockwise attention compared with full attention."""

    tokens: Int = key("T")
    blocks: Int = field("pairs of a query block and a source block", "(-(-tokens // block)) ** 2")
    largest_difference: ScientificReal = field("between both outputs, absolute")
    agrees: Flag = field("whether it is within the tolerance: only the order of sums differs")


R = TypeVar("R", Multiplications, Stored, Chain)


def grown(
    kind: type[R], name: str, sizes: list[Sizes], rows: Iterable[tuple[Count, ...]]
) -> Iterator[R]:
    """Each count at all lengths in turn, with its ratio to the length before."""
    for row in rows:
        before: int | None = None
        for size, count in zip(sizes, row, strict=True):
            values = count._asdict()
            values[name] = values.pop("part")
            agrees = count.counted == count.expected
            growth = count.counted / before if before else None
            yield kind(**values, tokens=size.T, agrees=agrees, growth=growth)
            before = count.counted


def all_sizes(fixture: AttentionCostFixture) -> list[Sizes]:
    """The sizes of every length. Raises FixtureError for more than a moment's work."""
    if fixture.lengths > MAX_LENGTHS:
        raise FixtureError("lengths", f"at most {MAX_LENGTHS}", str(fixture.lengths))
    widths = (fixture.model_width, fixture.score_width, fixture.value_width, fixture.hidden_width)
    sizes = [Sizes(fixture.shortest << n, *widths, fixture.block) for n in range(fixture.lengths)]
    T, D, k, v, H, _ = longest = sizes[-1]  # noqa: N806 - the letters of the formulas
    largest = max(T * T, T * max(D, k, v, H), D * max(k, v, H), H * H)
    if largest > MAX_VALUES:
        raise FixtureError("widths", f"arrays of at most {MAX_VALUES} values", str(largest))
    work = T * (T * (k + v + 1) + D * (2 * k + v + H) + H * H)
    if work > MAX_MULTIPLICATIONS:
        raise FixtureError("widths", f"at most {MAX_MULTIPLICATIONS} multiplications", str(work))
    if longest.blocks * longest.blocks > MAX_STEPS:
        expected = f"at most {MAX_STEPS} pairs of blocks of {T} tokens"
        raise FixtureError("block", expected, str(longest.blocks * longest.blocks))
    return sizes


def run_all(fixture: AttentionCostFixture, size: Sizes) -> Run:
    """Full attention, attention in blocks, and the recurrent network on one input."""
    rng = SplitMix64(fixture.seed)

    def drawn(*shape: int) -> Array:
        return 2.0 * rng.uniform(math.prod(shape)).reshape(shape) - 1.0

    T, D, k, v, H, _ = size  # noqa: N806
    x = drawn(T, D)
    head = named_head("head", drawn(k, D), drawn(k, D), drawn(v, D))
    inputs = named_parameter("rnn.input.weight", drawn(H, D))
    transition = named_parameter("rnn.recurrent.weight", drawn(H, H))
    cell = ElmanCell(inputs, transition, None, "tanh")
    attention = head(constant(x))
    rows = (attention.query.value, attention.key.value, attention.value.value)
    steps = blockwise_steps(*rows, scale=head.scale, block=size.B)
    recurrent = cell.unroll([constant(row[None]) for row in x], constant(np.zeros((1, H))))
    return Run(attention, counted_blocks(steps), recurrent)


def counted_blocks(steps: Iterator[BlockStep]) -> Blocks:
    """Run through the blocks and keep none of them."""
    products: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    outputs: dict[int, Array] = {}
    count = 0
    for step in steps:
        count += 1
        products["scores"] += products_of([step.scores])
        products["scaling"] += products_of([step.scaled])
        products["rescaling"] += products_of([step.rescaled_sum, step.rescaled_output])
        products["mixing"] += products_of([step.mixed])
        recorded = {*topology(step.state.sum), *topology(step.state.output)}
        products["recorded"] += products_of(recorded)
        elements |= Counter(  # of each the larger
            scores=step.scores.value.size,
            exponentials=step.exponentials.value.size,
            running=sum(part.value.size for part in step.state),
        )
        outputs[step.query_start] = finished(step.state)  # the last source block's remains
    return Blocks(np.concatenate([*outputs.values()]), count, products, elements)


def products_of(nodes: Iterable[Tensor]) -> int:
    """Multiplications that made these arrays, from their shapes."""
    return sum(
        node.value.size * (node.parents[0].shape[-1] if node.operation == "matmul" else 1)
        for node in nodes
        if node.operation in ("matmul", "mul")
    )


def multiplications(run: Run, size: Sizes) -> Iterator[Count]:
    attention, blocks, cells = run
    T, D, k, v, H, _ = size  # noqa: N806
    projections = (attention.query, attention.key, attention.value)
    projected = Count(
        "", "projections", products_of(projections), "T*D*(2*k+v)", T * D * (2 * k + v)
    )
    full = [
        projected._replace(method="full"),
        Count("full", "scores", products_of([attention.scores]), "T*T*k", T * T * k),
        Count("full", "scaling", products_of([attention.scaled]), "T*T", T * T),
        Count("full", "mixing", products_of([attention.output]), "T*T*v", T * T * v),
    ]
    yield from with_total(full, products_of(topology(attention.output)))
    N = size.blocks  # noqa: N806
    counted = blocks.multiplications
    blockwise = [
        projected._replace(method="blockwise"),
        Count("blockwise", "scores", counted["scores"], "T*T*k", T * T * k),
        Count("blockwise", "scaling", counted["scaling"], "T*T", T * T),
        Count("blockwise", "rescaling", counted["rescaling"], "N*T*(v+1)", N * T * (v + 1)),
        Count("blockwise", "mixing", counted["mixing"], "T*T*v", T * T * v),
    ]
    yield from with_total(blockwise, projected.counted + counted["recorded"])
    inputs, states = ([cell.input_term for cell in cells], [cell.recurrent_term for cell in cells])
    recurrent = [
        Count("recurrent", "inputs", products_of(inputs), "T*D*H", T * D * H),
        Count("recurrent", "transitions", products_of(states), "T*H*H", T * H * H),
    ]
    yield from with_total(recurrent, products_of(topology(cells[-1].state)))


def with_total(parts: list[Count], recorded: int) -> Iterator[Count]:
    """The parts, and all multiplications that were recorded beside the sum of their formulas."""
    yield from parts
    expected = sum(part.expected for part in parts)
    yield Count(parts[0].method, "total", recorded, "all-parts", expected)


def stored(run: Run, size: Sizes) -> Iterator[Count]:
    attention, blocks, cells = run
    T, v, H, S = size.T, size.v, size.H, size.side  # noqa: N806
    yield Count("full", "scores", attention.scores.value.size, "T*T", T * T)
    yield Count("full", "weights", attention.weights.value.size, "T*T", T * T)
    held = blocks.elements
    yield Count("blockwise", "scores", held["scores"], "S*S", S * S)
    yield Count("blockwise", "exponentials", held["exponentials"], "S*S", S * S)
    yield Count("blockwise", "running", held["running"], "S*(v+2)", S * (v + 2))
    states = sum(cell.state.value.size for cell in cells)
    yield Count("recurrent", "states", states, "T*H", T * H)


def chains(run: Run, size: Sizes) -> Iterator[Count]:
    yield Count("full", "output", longest_chain(run.attention.output), "3", 3)
    yield Count("recurrent", "last-state", longest_chain(run.recurrent[-1].state), "T", size.T)


def longest_chain(output: Tensor) -> int:
    """Matrix products on the longest path that ends in `output`."""
    length: dict[Tensor, int] = {}
    for node in topology(output):
        before = max((length[parent] for parent in node.parents), default=0)
        length[node] = before + (node.operation == "matmul")
    return length[output]


def compared(fixture: AttentionCostFixture, run: Run, size: Sizes) -> Exact:
    difference = float(np.abs(run.blocks.output - run.attention.output.value).max())
    return Exact(
        tokens=size.T,
        blocks=run.blocks.steps,
        largest_difference=difference,
        agrees=difference <= fixture.tolerance,
    )


@trace(
    "attention-cost",
    version=1,
    source="Week 6",
    shows="what attention costs as sequences grow",
    fixture=AttentionCostFixture,
)
def attention_cost_trace(
    fixture: AttentionCostFixture,
) -> Iterator[FixtureRecord | Multiplications | Stored | Chain | Exact]:
    sizes = all_sizes(fixture)
    counts: list[tuple[list[Count], list[Count], list[Count]]] = []
    comparisons = []
    for size in sizes:
        run = run_all(fixture, size)
        counts.append(([*multiplications(run, size)], [*stored(run, size)], [*chains(run, size)]))
        comparisons.append(compared(fixture, run, size))
    yield FixtureRecord(
        name=fixture.name,
        lengths=[size.T for size in sizes],
        model_width=fixture.model_width,
        score_width=fixture.score_width,
        value_width=fixture.value_width,
        hidden_width=fixture.hidden_width,
        block=fixture.block,
    )
    products, arrays, paths = (zip(*column, strict=True) for column in zip(*counts, strict=True))
    yield from grown(Multiplications, "part", sizes, products)
    yield from grown(Stored, "array", sizes, arrays)
    yield from grown(Chain, "array", sizes, paths)
    yield from comparisons

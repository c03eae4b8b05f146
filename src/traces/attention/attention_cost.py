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
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, constant, topology
from ...core.nn.attention import AttentionHead, AttentionPass
from ...core.nn.blockwise import BlockStep, blockwise_steps, finished
from ...core.nn.parameters import named_parameter
from ...core.nn.rnn import CellPass, ElmanCell
from ...core.nn.splitmix64 import SplitMix64
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import MAX_VALUES, Fixture, integer, real, word
from ...report.trace import trace
from ._attention_cost_records import Chain, Exact, FixtureRecord, Multiplications, Stored

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
    for tokens, count, growth in growing(sizes, products):
        yield Multiplications(part=count.part, **shared(tokens, count, growth))
    for tokens, count, growth in growing(sizes, arrays):
        yield Stored(array=count.part, **shared(tokens, count, growth))
    for tokens, count, growth in growing(sizes, paths):
        yield Chain(array=count.part, **shared(tokens, count, growth))
    yield from comparisons


def growing(
    sizes: list[Sizes], rows: Iterable[tuple[Count, ...]]
) -> Iterator[tuple[int, Count, float | None]]:
    """Each count at all lengths in turn, with its ratio to the length before."""
    for row in rows:
        before: int | None = None
        for size, count in zip(sizes, row, strict=True):
            yield size.T, count, count.counted / before if before else None
            before = count.counted


def shared(tokens: int, count: Count, growth: float | None) -> dict[str, Any]:
    """The fields that all records of a count have."""
    return {
        "method": count.method,
        "tokens": tokens,
        "counted": count.counted,
        "formula": count.formula,
        "expected": count.expected,
        "agrees": count.counted == count.expected,
        "growth": growth,
    }


def all_sizes(fixture: AttentionCostFixture) -> list[Sizes]:
    """The sizes of every length. Raises FixtureError for more than a moment's work."""
    if fixture.lengths > MAX_LENGTHS:
        raise FixtureError("lengths", f"at most {MAX_LENGTHS}", str(fixture.lengths))
    widths = (fixture.model_width, fixture.score_width, fixture.value_width, fixture.hidden_width)
    sizes = [
        Sizes(fixture.shortest << doubling, *widths, fixture.block)
        for doubling in range(fixture.lengths)
    ]
    *_, longest = sizes
    T, D, k, v, H, _ = longest  # noqa: N806 - the letters of the formulas
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

    x = drawn(size.T, size.D)
    head = AttentionHead(
        named_parameter("head.query.weight", drawn(size.k, size.D)),
        named_parameter("head.key.weight", drawn(size.k, size.D)),
        named_parameter("head.value.weight", drawn(size.v, size.D)),
    )
    cell = ElmanCell(
        named_parameter("rnn.input.weight", drawn(size.H, size.D)),
        named_parameter("rnn.recurrent.weight", drawn(size.H, size.H)),
        None,
        "tanh",
    )
    attention = head(constant(x))
    rows = (attention.query.value, attention.key.value, attention.value.value)
    steps = blockwise_steps(*rows, scale=head.scale, block=size.B)
    recurrent = cell.unroll([constant(row[None]) for row in x], constant(np.zeros((1, size.H))))
    return Run(attention, counted_blocks(steps), recurrent)


def counted_blocks(steps: Iterator[BlockStep]) -> Blocks:
    """Run through the blocks and keep none of them."""
    products: Counter[str] = Counter()
    elements: dict[str, int] = {}
    outputs: list[Array] = []
    count = 0
    for step in steps:
        count += 1
        products["scores"] += products_of([step.scores])
        products["scaling"] += products_of([step.scaled])
        products["rescaling"] += products_of([step.rescaled_sum, step.rescaled_output])
        products["mixing"] += products_of([step.mixed])
        recorded = {*topology(step.state.sum), *topology(step.state.output)}
        products["recorded"] += products_of(recorded)
        for name, size in (
            ("scores", step.scores.value.size),
            ("exponentials", step.exponentials.value.size),
            ("running", sum(part.value.size for part in step.state)),
        ):
            elements[name] = max(size, elements.get(name, 0))
        if step.source_start == 0:
            outputs.append(np.empty(0))
        outputs[-1] = finished(step.state)  # of a query block the last source block's remains
    return Blocks(np.concatenate(outputs), count, products, elements)


def products_of(nodes: Iterable[Tensor]) -> int:
    """Multiplications that made these arrays, from their shapes."""
    total = 0
    for node in nodes:
        if node.operation == "matmul":
            total += node.value.size * node.parents[0].shape[-1]
        elif node.operation == "mul":
            total += node.value.size
    return total


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

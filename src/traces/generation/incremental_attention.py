"""Keys and values of earlier positions are kept, so that each new token is projected but once. Its
query meets all keys so far, and what comes out has the bits that the last row of a pass over the
whole prefix has.

Source: Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762), for the mask that allows for it.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import constant
from ...core.generation.layer_cache import CachedStep, LayerCache, cached_step
from ...core.nn.rotary_attention import RotaryAttention, RotaryAttentionPass
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, integer, real, reals
from ...report.records import Record, field, key
from ...report.style import BARS, ZERO
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals
from .. import _chapter as chapter
from .. import _lanes
from .._rotary import Frequency, Position, table
from ._caches import refused

TOLERANCE = 1e-12  # between a cached output and a whole pass


class IncrementalAttentionFixture(Fixture):
    """A layer, the tokens that it sees one by one, and the room of its cache."""

    computed = ("tokens width tokens",)

    heads: int = integer(2, "Parts of the features that attend apart", least=1)
    base: float = real(100.0, "What the frequencies are powers of", positive=True)
    positions: int = integer(5, "Positions that have an angle", least=1)
    capacity: int = integer(4, "Tokens that the cache has room for", least=1)
    input: Array = reals(
        [
            [1, 0, 1, 0],
            [0.5403023058681398, -0.8414709848078965, 0, 1],
            [-0.4161468365471424, -0.9092974268256817, 1, 1],
        ],
        "tokens width",
        "The tokens, in order",
    )
    query_weight: Array = reals(np.eye(4), "width width", "Makes queries")
    key_weight: Array = reals(np.eye(4), "width width", "Makes keys")
    value_weight: Array = reals(np.eye(4), "width width", "Makes values")
    output_weight: Array = reals(np.eye(4)[[2, 3, 0, 1]], "width width", "Mixes the heads")


class Seen(NamedTuple):
    """One token: its own pass, what the cache holds after it, and the pass over the prefix."""

    step: CachedStep
    shape: tuple[int, ...]
    keys: Array  # (heads, length, head_width)
    values: Array
    full: RotaryAttentionPass

    @property
    def output(self) -> Array:
        """The new token's row, (width)."""
        row: Array = self.step.output.value[0, 0]
        return row

    @property
    def last(self) -> Array:
        """The last row of the pass over the prefix, (width)."""
        row: Array = self.full.output.value[0, -1]
        return row

    @property
    def difference(self) -> float:
        """The largest between both rows."""
        return float(np.max(abs(self.output - self.last)))


class Reset(NamedTuple):
    """A cache before it forgets and after."""

    before: int
    after: int
    reused: bool
    unchanged: bool
    replayed: bool


class Run(NamedTuple):
    """All tokens, and a second run on the cache that has forgotten them."""

    layer: RotaryAttention
    seen: list[Seen]
    reset: Reset


def compute(fixture: IncrementalAttentionFixture) -> Run:
    layer, tokens = _lanes.layer_of(fixture), len(fixture.input)
    if not 1 <= tokens <= fixture.capacity:
        raise FixtureError("input", f"from 1 to {fixture.capacity} tokens", str(tokens))
    cache = LayerCache(layer, 1, fixture.capacity)
    seen = steps(layer, cache, fixture.input)
    state, places = cache.state, places_of(cache)
    cache.reset()
    reset = cache.state
    again = steps(layer, cache, fixture.input)
    return Run(
        layer,
        seen,
        Reset(
            state.length,
            reset.length,
            places_of(cache) == places,
            (reset.keys, reset.values) == (state.keys, state.values),
            chapter.same(
                [(one.keys, one.values, one.output) for one in seen],
                [(one.keys, one.values, one.output) for one in again],
            ),
        ),
    )


def places_of(cache: LayerCache) -> tuple[int, int]:
    """Where in memory the keys and the values lie."""
    return cache.keys.ctypes.data, cache.values.ctypes.data


def steps(layer: RotaryAttention, cache: LayerCache, rows: Array) -> list[Seen]:
    seen = []
    for at in range(len(rows)):
        step = cached_step(layer, constant(rows[None, at : at + 1]), cache)
        cache.append(step)
        keys, values = (x[0, :, : cache.length].copy() for x in (cache.keys, cache.values))
        full = layer(constant(rows[None, : at + 1]))
        seen.append(Seen(step, cache.shape, keys, values, full))
    return seen


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    tokens: Int = field("seen one by one")
    width: Int = field("features of a token")
    heads: Int = field("parts of the features")
    head_width: Int = field("features of a head", "width / heads")
    pairs: Int = field("of features that are turned together", "head_width / 2")
    positions: Int = field("that have an angle")
    capacity: Int = field("tokens that the cache has room for")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(head_width)")


def own(name: str) -> str:
    """The formula of a head's part of what a weight makes of the token."""
    columns = "head * head_width:(head + 1) * head_width"
    return f"(fixture.input[position] @ fixture.{name}_weight)[{columns}]"


def turned(name: str) -> str:
    """The formula of that part where the token stands."""
    a, b = f"{name}[0::2]", f"{name}[1::2]"
    first, second = (
        f"{a} * Position.cosines - {b} * Position.sines",
        (f"{b} * Position.cosines + {a} * Position.sines"),
    )
    return f"reshape(stack({first}, {second}, axis=-1), head_width)"


def kept(name: str, part: str) -> dict[str, str]:
    """The formula of all that the cache holds of one head."""
    before = f"concat(Head(position=position - 1, head=head).{name}, {part})"
    return {"position": before, "": part}


Lane = Annotated[Reals, "head_width"]


class Head(Record):
    """One head of a new token: what is added to the cache, what it holds, and what is mixed."""

    position: Int = key("0-based")
    head: Int = key("0-based")
    query: Lane = field("projected", own("query"))
    key: Lane = field("projected", own("key"))
    turned_query: Lane = field("where the token stands", turned("query"))
    appended_key: Lane = field("where the token stands", turned("key"))
    appended_value: Lane = field("projected", own("value"))
    keys: Reals = field("of all tokens so far", kept("keys", "appended_key"))
    values: Reals = field("of all tokens so far", kept("values", "appended_value"))
    weights: Reals = field(
        "shares of the tokens so far",
        "softmax(reshape(keys, -1, head_width) @ turned_query * scale)",
    )
    output: Lane = field("the values mixed", "weights @ reshape(values, -1, head_width)")


class Step(Record):
    """One new token: its output, and that of a pass over everything."""

    position: Int = key("0-based")
    cached: Int = field("tokens in the cache before it")
    input: Annotated[Reals, "width"] = field("the token", "fixture.input[position]")
    output: Annotated[Reals, "width"] = field(
        "heads mixed", "reshape(Head.output, width) @ fixture.output_weight"
    )
    full: Annotated[Reals, "width"] = field("the last row of a pass over the prefix", "output")
    difference: Real = field("the largest between both", "max(abs(output - full))")


class Work(Record):
    """Rows that are projected by each weight."""

    full: Int = field("if every prefix is passed whole", "tokens * (tokens + 1) / 2")
    incremental: Int = field("if each token is passed once", "tokens")
    reused: Int = field("that are kept instead", "full - incremental")


def heads(run: Run, at: int) -> Iterator[Head]:
    seen = run.seen[at]
    step = seen.step
    for head in range(run.layer.heads):
        yield Head(
            position=at,
            head=head,
            query=step.query.value[0, head, 0],
            key=step.key.value[0, head, 0],
            turned_query=step.rotated_query.value[0, head, 0],
            appended_key=step.rotated_key.value[0, head, 0],
            appended_value=step.value.value[0, head, 0],
            keys=seen.keys[head],
            values=seen.values[head],
            weights=step.weights[0, head, 0],
            output=step.head_outputs.value[0, head, 0],
        )


def work(run: Run) -> Work:
    full = sum(len(seen.full.output.value[0]) for seen in run.seen)  # of integers
    return Work(full=full, incremental=len(run.seen), reused=full - len(run.seen))


def properties(run: Run, unchanged: bool) -> dict[str, bool]:
    return {
        "cached-rows-are-those-of-whole-passes": all(
            seen.difference <= TOLERANCE for seen in run.seen
        ),
        "a-refusal-leaves-the-cache": unchanged,
        "the-room-is-used-again": run.reset.reused,
        "forgetting-writes-nothing": run.reset.unchanged,
        "the-same-tokens-give-the-same-again": run.reset.replayed,
    }


def facts(fixture: IncrementalAttentionFixture, run: Run) -> dict[str, Any]:
    tried = refused(run.layer, _lanes.layer_of(fixture), fixture.input[:1])
    return {
        "tolerance": TOLERANCE,
        "batch": run.seen[0].step.output.shape[0],
        "steps": [
            {
                "step": step,
                "after": step.cached + 1,
                "shape": seen.shape,
                "heads": [*heads(run, step.position)],
                "difference": seen.difference,
            }
            for step, seen in (
                (step_of(fixture, run, at), run.seen[at]) for at in range(len(run.seen))
            )
        ],
        "avoided": 2 * work(run).reused,
        "reset": run.reset,
        "lengths": [seen.step.weights.shape[-1] for seen in run.seen],
        "errors": {name.replace("-", "_"): try_ for name, try_ in tried.attempts.items()},
        "nonfinite": "nonfinite-projection" in tried.attempts,
        "unchanged": tried.unchanged,
    }


def step_of(fixture: IncrementalAttentionFixture, run: Run, at: int) -> Step:
    seen = run.seen[at]
    return Step(
        position=at,
        cached=seen.step.position,
        input=fixture.input[at],
        output=seen.output,
        full=seen.last,
        difference=seen.difference,
    )


@trace(
    "incremental-attention",
    version=1,
    source="Chapter 37",
    shows="attention that keeps its keys and values",
    fixture=IncrementalAttentionFixture,
    compute=compute,
    records=(
        *(FixtureRecord, Frequency, Position, Head, Step, Work),
        *(chapter.Property, chapter.Refusal),
    ),
    original=Original(style=BARS._replace(zero=ZERO), facts=facts),
)
def incremental_attention_trace(fixture: IncrementalAttentionFixture, run: Run) -> Iterator[Record]:
    tried = refused(run.layer, _lanes.layer_of(fixture), fixture.input[:1])
    yield chapter.sized(
        FixtureRecord,
        fixture,
        capacity=fixture.capacity,
        **_lanes.sizes(run.layer),
    )
    yield from table(run.layer.rope)
    for at in range(len(run.seen)):
        yield from heads(run, at)
        yield step_of(fixture, run, at)
    yield work(run)
    for name, holds in properties(run, tried.unchanged).items():
        yield chapter.Property(name=name, holds=holds)
    yield from chapter.refusals(tried.attempts)

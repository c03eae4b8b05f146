"""Pairs of features of a query and of a key are turned by angles that grow with the position. The
first position is not turned at all, no length changes, and the dot product of two turned rows
depends on how far apart they are: the same shift of both leaves it as it was.

A pair is two neighbours, or a feature of the first half and one of the second.

Source: Su et al. 2021, RoFormer, section 3.2 (arXiv:2104.09864).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, add, parameter
from ...core.autodiff.errors import ReleasedOperand
from ...core.autodiff.rotation import Pairing
from ...core.errors import OutOfRange
from ...core.nn import errors
from ...core.nn.dot_product import dot_products
from ...core.nn.rope import RoPE
from ...core.numerics import sum_axis
from ...core.tensors.layout import WORD
from ...fixtures.fixture import choice, integer, real, reals
from ...report.records import Record, field, key
from ...report.style import BARS, ZERO
from ...report.trace import Original, trace
from ...report.values import Int, Real, Word
from .. import _chapter as chapter
from .._probes import near, same_bits
from .._rotary import Frequency, Position, halves, neighbours, table
from .._tape import require_steps

TOLERANCE = 1e-12  # of a length and of a dot product
WORDS = {"pairs": "adjacent", "halves": "halves"}  # what the original calls the pairs


class RoPEFixture(chapter.CheckedFixture):
    """Queries and keys of the same tokens, the table of angles, and a second place to begin at."""

    computed = ("tokens tokens",)

    gradcheck_tolerance: float = real(4e-6, "Largest scaled error that passes", least=0.0)
    base: float = real(100.0, "What the frequencies are powers of", positive=True)
    positions: int = integer(6, "Positions that have an angle", least=1)
    offset: int = integer(3, "Position of the first token after the shift", least=0)
    pairing: str = choice("pairs", ["pairs", "halves"], "Which features are turned together")
    query: Array = reals([[1, 0, 1, 0]] * 3, "tokens width", "What each token looks for")
    key: Array = reals([[1, 0, 1, 0]] * 3, "tokens width", "What each token is found by")
    query_upstream: Array = reals(
        [[1, -0.5, 0.25, 0.75], [-0.3, 0.8, 1.2, -0.4], [0.6, 0.1, -0.7, 0.9]],
        "tokens width",
        "dL/d turned query",
    )
    key_upstream: Array = reals(
        [[-0.2, 0.4, 0.9, -0.6], [0.5, 1.1, -0.8, 0.3], [1, -0.9, 0.2, 0.7]],
        "tokens width",
        "dL/d turned key",
    )


def rotation(fixture: RoPEFixture) -> RoPE:
    require_steps("positions", fixture.positions)
    pairing: Pairing = "halves" if fixture.pairing == "halves" else "pairs"
    return RoPE(fixture.query.shape[-1], fixture.positions, fixture.base, pairing)


def forward(fixture: RoPEFixture) -> chapter.Nodes:
    rope, query, key = rotation(fixture), parameter(fixture.query), parameter(fixture.key)
    turned, shifted = ((rope(query, offset), rope(key, offset)) for offset in (0, fixture.offset))
    return {
        "query": query,
        "key": key,
        "turned_query": turned[0],
        "turned_key": turned[1],
        "shifted_query": shifted[0],
        "shifted_key": shifted[1],
        "dots": dot_products(*turned),
        "shifted_dots": dot_products(*shifted),
        "loss": add(
            chapter.weighed(turned[0], fixture.query_upstream, axis=-1),
            chapter.weighed(turned[1], fixture.key_upstream, axis=-1),
        ),
    }


def compute(fixture: RoPEFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    tokens: Int = field("rows, each a query and a key")
    width: Int = field("features of a row")
    pairs: Int = field("of features that are turned together", "width / 2")
    positions: Int = field("that have an angle")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    pairing: Word = field("pairs of neighbours, or of a feature of each half")
    offset: Int = field("the first token's position after the shift")


class Length(Record):
    """One query's length, which no turn changes."""

    token: Int = key("0-based")
    given: Real = field("of the query", "norm(Query.values[token])")
    turned: Real = field("where it stands", "norm(TurnedQuery.values[token])")
    shifted: Real = field("after the shift", "norm(ShiftedQuery.values[token])")


def turn(rows: str, first: str = "0", *, back: bool = False) -> dict[str, str]:
    """The formula of rows turned by the angles from a position on, or turned back."""
    return {
        "pairing == 'pairs'": neighbours(rows, "tokens, width", first, back=back),
        "": halves(rows, first, back=back),
    }


GRID = "{0}Query.values @ {0}Key.values.T"
LOSS = "dot({}Query.values, fixture.query_upstream) + dot({}Key.values, fixture.key_upstream)"
FORWARD = chapter.tensors(
    ("query", "tokens width", "what each token looks for", "fixture.query"),
    ("key", "tokens width", "what each token is found by", "fixture.key"),
    ("turned_query", "tokens width", "queries from position 0 on", turn("Query.values")),
    ("turned_key", "tokens width", "keys from position 0 on", turn("Key.values")),
    ("shifted_query", "tokens width", "queries from the offset on", turn("Query.values", "offset")),
    ("shifted_key", "tokens width", "keys from the offset on", turn("Key.values", "offset")),
    ("dots", "tokens tokens", "turned queries by turned keys", GRID.format("Turned")),
    ("shifted_dots", "tokens tokens", "the same after the shift", GRID.format("Shifted")),
    ("loss", "scalar", "sum(turned * upstream)", LOSS.format("Turned", "Turned")),
)
BACKWARD = chapter.gradients(
    FORWARD,
    turned_query="fixture.query_upstream",
    turned_key="fixture.key_upstream",
    query=turn("TurnedQueryGradient.values", back=True),
    key=turn("TurnedKeyGradient.values", back=True),
)


def lengths(nodes: chapter.Nodes) -> Iterator[Length]:
    rows = (nodes[name].value for name in ("query", "turned_query", "shifted_query"))
    norms = [np.sqrt(sum_axis(values * values, axis=1)) for values in rows]
    for token, (given, turned, shifted) in enumerate(zip(*norms, strict=True)):
        yield Length(token=token, given=given, turned=turned, shifted=shifted)


def properties(fixture: RoPEFixture, nodes: chapter.Nodes) -> dict[str, bool]:
    rows = [*lengths(nodes)]
    given, turned, shifted = (
        np.array([getattr(row, name) for row in rows]) for name in ("given", "turned", "shifted")
    )
    return {
        "position-0-is-not-turned": same_bits(
            nodes["turned_query"].value[:1], fixture.query[:1] + 0.0
        ),
        "no-length-changes": near(given, turned, TOLERANCE) and near(given, shifted, TOLERANCE),
        "a-common-shift-changes-no-dot-product": near(
            nodes["dots"].value, nodes["shifted_dots"].value, TOLERANCE
        ),
    }


def attempts(fixture: RoPEFixture) -> dict[str, chapter.Attempt]:
    """Tables that cannot be, and rows that do not fit them."""
    tokens, width = fixture.query.shape
    rope, short = rotation(fixture), RoPE(width, tokens, fixture.base)

    def bad(part: str, expected: str, found: object) -> OutOfRange:
        return OutOfRange(layer="RoPE", part=part, expected=expected, found=found)

    def rows(tokens: int, width: int) -> Tensor:
        return parameter(np.zeros((tokens, width)))

    made = chapter.attempted(
        RoPE,
        zero_width=(bad("width", "at least 1", 0), 0, tokens, fixture.base),
        odd_width=(errors.OddWidth(width=width - 1), width - 1, tokens, fixture.base),
        invalid_base=(bad("base", "a positive, finite number", 0.0), width, tokens, 0.0),
    )
    used = chapter.attempted(
        lambda layer, *given: layer(*given),
        input_rank=(errors.RoPEInputRank(rank=1), rope, parameter(np.zeros(width))),
        width_mismatch=(
            errors.RoPEInputWidth(expected=width, actual=width - 2),
            *(rope, rows(tokens, width - 2)),
        ),
        position_range=(
            errors.PositionRange(offset=tokens - 1, tokens=2, capacity=tokens),
            *(short, rows(2, width), tokens - 1),
        ),
        offset_overflow=(
            errors.PositionOverflow(offset=WORD - 1, tokens=1),
            *(rope, rows(1, width), WORD - 1),
        ),
        released_input=(
            ReleasedOperand(operation="rotary_pairs", operand=0),
            *(rope, chapter.released(fixture.query)),
        ),
    )
    return made | used


def facts(fixture: RoPEFixture, done: chapter.Computed) -> dict[str, Any]:
    tokens, width = fixture.query.shape
    rope, longer = rotation(fixture), RoPE(width, tokens + 1, fixture.base)
    places = np.arange(tokens)
    shapes = {
        name: (given, layer(parameter(np.zeros(given)), offset).shape)
        for name, layer, given, offset in (
            ("rank_three", longer, (2, tokens, width), 1),
            ("rank_four", longer, (2, 2, tokens, width), 1),
            ("no_rows", longer, (0, tokens, width), 1),
            ("no_tokens", rope, (2, 0, width), rope.positions),
        )
    }
    return {
        "layout": WORDS[fixture.pairing],
        "tolerance": TOLERANCE,
        "angles": rope.angles[:tokens],
        "cosines": rope.cosines[:tokens],
        "sines": rope.sines[:tokens],
        "turned": [
            {
                **{name: getattr(rope, name)[at] for name in ("angles", "cosines", "sines")},
                "before": fixture.query[at],
                "after": done.nodes["turned_query"].value[at],
            }
            for at in places
        ],
        "dots": [{"offsets": places - at, "values": done.nodes["dots"].value[at]} for at in places],
        "places": places,
        "shifted_places": places + fixture.offset,
        "shapes": shapes,
        "ranks": [len(shapes[name][0]) for name in ("rank_three", "rank_four")],
        "valid": {name: given == found for name, (given, found) in shapes.items()},
        "end": rope.positions,
        "finite": done.backward.finite,
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "rope",
    version=1,
    source="Chapter 29",
    shows="queries and keys turned by their positions",
    fixture=RoPEFixture,
    choices=("pairing",),
    compute=compute,
    records=(FixtureRecord, Frequency, Position, *FORWARD, Length, *BACKWARD, *chapter.EVIDENCE),
    original=Original(style=BARS._replace(zero=ZERO), facts=facts),
    loss="sum(Loss.values)",
)
def rope_trace(fixture: RoPEFixture, done: chapter.Computed) -> Iterator[Record]:
    rope = rotation(fixture)
    checks = chapter.checked(fixture, done, forward, "query", "key")
    evidence = [*chapter.evidence(properties(fixture, done.nodes), attempts(fixture), checks)]
    yield chapter.sized(
        FixtureRecord,
        fixture,
        pairs=rope.width // 2,
        positions=rope.positions,
        base=rope.base,
        pairing=fixture.pairing,
        offset=fixture.offset,
    )
    yield from table(rope)
    yield from done.values(FORWARD)
    yield from lengths(done.nodes)
    yield from done.gradients(BACKWARD)
    yield from evidence

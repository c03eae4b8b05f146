"""Position t has a vector of its own: features 2i and 2i + 1 are the sine and the cosine of t times
one angular frequency, base^(-2 i / width), fast for the first pair and slow for the last. It is
added to the token's embedding, feature by feature, so that a token that occurs twice has two
different inputs; in the sum's way back both addends receive the sum's gradient unchanged.

A shift by a fixed number of positions turns each complete pair by a fixed angle, wherever it is:
the angle-addition formulas, tried at every position. An odd width leaves the last sine alone, and
one coordinate alone has no such relation: it is zero at position 0 and not zero after the shift.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5 (arXiv:1706.03762).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, add, constant
from ...core.nn.positions import exponents, frequencies, sinusoidal
from ...core.numerics.trigonometric import cos, sin
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, integer, real, reals, word, words
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Real, Reals, ScientificReal, Shape, Word
from .. import _proverb as proverb
from .._probes import same_bits
from .._rows import forward_rows

MAX_SHIFT = 1 << 40  # larger ones would no longer be exact in an angle's position


class SinusoidalPositionsFixture(Fixture):
    """The embeddings to which positions are added, and how the positions are made."""

    name: str = word("proverb-positions", "What the trace calls these numbers")
    embeddings: Array = reals(proverb.SEQUENCE, "tokens width", "E, one row a position")
    tokens: tuple[str, ...] | None = words(
        proverb.TOKENS, "tokens", 'The word at each position, or "none"', optional=True
    )
    base: float = real(proverb.POSITION_BASE, "What the frequencies are powers of; positive")
    shift: int = integer(3, "How many positions further the relation looks", least=0)
    tolerance: float = real(1e-12, "Largest difference of a shifted pair that agrees")


class Computation(NamedTuple):
    """What makes the encodings (tokens, width), the same after the shift, and the sums."""

    exponent: Array
    frequency: Array
    angles: Array
    encoding: Tensor
    shifted: Array
    input: Tensor


def compute(fixture: SinusoidalPositionsFixture) -> Computation:
    tokens, width = fixture.embeddings.shape
    if fixture.base <= 0.0:
        raise FixtureError("base", "a positive number", repr(fixture.base))
    if fixture.shift > MAX_SHIFT:
        raise FixtureError("shift", f"at most {MAX_SHIFT}", str(fixture.shift))
    positions = np.arange(float(tokens))[:, None]
    omega = frequencies(width, fixture.base)
    with np.errstate(over="ignore", invalid="ignore"):
        angles, later = positions * omega, (positions + float(fixture.shift)) * omega
    if not (np.isfinite(angles).all() and np.isfinite(later).all()):
        raise FixtureError("base", "one that gives finite angles", repr(fixture.base))
    encoding = constant(sinusoidal(angles))
    total = add(constant(fixture.embeddings), encoding)
    return Computation(exponents(width), omega, angles, encoding, sinusoidal(later), total)


FeatureRow = Annotated[Reals, "width"]
PairValues = Annotated[Reals, "2"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    tokens: Int = field("positions")
    width: Int = field("features of an embedding and of a position's vector")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    pairs: Int = field("complete pairs of sine and cosine", "width // 2")
    unpaired_feature: Int | None = field(
        "the sine without a cosine, if the width is odd", {"width % 2": "width - 1"}
    )
    shift: Int = field("how many positions further the relation looks")
    position_shape: Shape = field("tokens x width")
    input_shape: Shape = field("tokens x width: adding changes no shape")


class Frequency(Record):
    """How fast one feature turns."""

    feature: Int = key("0-based")
    pair: Int = field("the pair of sine and cosine that it belongs to", "feature // 2")
    function: Word = field("sin for an even feature, cos for an odd one")
    exponent: Real = field("of the base", "-2 * pair / width")
    frequency: Real = field("radians a position", "base ** exponent")
    frequency_scientific: ScientificReal = field(
        "the same, where 12 decimals hide digits", "base ** exponent"
    )


class Position(Record):
    """One position's vector, and its sum with the embedding that stands there."""

    position: Int = key("t, 0-based")
    token: Word | None = field("the word here", omitted=True)
    angles: FeatureRow = field("t times each frequency, radians", "position * Frequency.frequency")
    encoding: FeatureRow = field(
        "the feature's function of its angle",
        "where(Frequency.function == 'sin', sin(angles), cos(angles))",
    )
    embedding: FeatureRow = field("the token's embedding", "fixture.embeddings[position]")
    input: FeatureRow = field("what the first layer reads", "embedding + encoding")


class Recurrence(Record):
    """A position whose embedding has the bits of an earlier position's."""

    earlier: Int = field("the first position with this embedding")
    position: Int = key("the position at which it stands again")
    token: Word | None = field("the word here", omitted=True)
    inputs_equal: Flag = field("whether their sums with the positions have the same bits too")


class Rotation(Record):
    """What the shift does to one complete pair, at whatever position."""

    pair: Int = key("0-based; features 2 pair and 2 pair + 1")
    angle: Real = field(
        "by which the shift turns it", "shift * Frequency(feature=2 * pair).frequency"
    )
    cosine: Real = field("of the angle", "cos(angle)")
    sine: Real = field("of the angle", "sin(angle)")


class ShiftedPair(Record):
    """One pair at one position, turned, and the pair that stands there after the shift."""

    pair: Int = key("0-based")
    position: Int = key("t, before the shift")
    pair_here: PairValues = field(
        "s, c = sine and cosine at t", "Position.encoding[2 * pair : 2 * pair + 2]"
    )
    turned: PairValues = field(
        "s cosine + c sine, c cosine - s sine, with those of ROTATION",
        (
            "stack(Rotation.cosine * pair_here[0] + Rotation.sine * pair_here[1], "
            "Rotation.cosine * pair_here[1] - Rotation.sine * pair_here[0])"
        ),
    )
    pair_there: PairValues = field(
        "sine and cosine at t + shift",
        (
            "stack(sin((position + shift) * Frequency(feature=2 * pair).frequency), "
            "cos((position + shift) * Frequency(feature=2 * pair).frequency))"
        ),
    )
    difference: ScientificReal = field(
        "the larger of both differences, absolute", "max(abs(turned - pair_there))"
    )
    agrees: Flag = field("whether it is within the tolerance")


class Unpaired(Record):
    """Why the last sine of an odd width has no such relation of its own."""

    feature: Int = key("the last feature")
    at_zero: Real = field("its value at position 0", "Position(position=0).encoding[feature]")
    after_shift: Real = field("its value at position 0 + shift", "sin(shift * Frequency.frequency)")
    one_factor: Flag = field("whether some factor could lead from the first to the second")


def words_of(fixture: SinusoidalPositionsFixture) -> Sequence[str | None]:
    """The word at each position, if there are words."""
    return [None] * len(fixture.embeddings) if fixture.tokens is None else fixture.tokens


def recurrences(fixture: SinusoidalPositionsFixture, run: Computation) -> Iterator[Recurrence]:
    first_at: dict[bytes, int] = {}
    pairs = zip(fixture.embeddings, words_of(fixture), strict=True)
    for position, (row, token) in enumerate(pairs):
        earlier = first_at.setdefault(row.tobytes(), position)
        if earlier != position:
            yield Recurrence(
                earlier=earlier,
                position=position,
                token=token,
                inputs_equal=same_bits(run.input.value[earlier], run.input.value[position]),
            )


def rotations(
    fixture: SinusoidalPositionsFixture, run: Computation
) -> Iterator[Rotation | ShiftedPair]:
    for pair in range(fixture.embeddings.shape[1] // 2):
        angle = float(fixture.shift) * run.frequency[2 * pair]
        cosine, sine = float(cos(angle)), float(sin(angle))
        yield Rotation(pair=pair, angle=angle, cosine=cosine, sine=sine)
        both = slice(2 * pair, 2 * pair + 2)
        here, there = run.encoding.value[:, both], run.shifted[:, both]
        s, c = here.T
        turned = np.stack([s * cosine + c * sine, c * cosine - s * sine], axis=-1)
        difference = np.abs(turned - there).max(axis=-1)
        nodes = {
            "pair_here": here,
            "turned": turned,
            "pair_there": there,
            "difference": difference,
            "agrees": difference <= fixture.tolerance,
        }
        yield from forward_rows(ShiftedPair, nodes, pair=pair)


def lonely_sine(run: Computation, feature: int) -> Unpaired:
    at_zero = float(run.encoding.value[0, feature])
    after_shift = float(run.shifted[0, feature])
    return Unpaired(
        feature=feature,
        at_zero=at_zero,
        after_shift=after_shift,
        one_factor=at_zero != 0.0 or after_shift == 0.0,
    )


@trace(
    "sinusoidal-positions",
    version=1,
    source="Week 6",
    shows="fixed sine and cosine positions",
    fixture=SinusoidalPositionsFixture,
)
def sinusoidal_positions_trace(
    fixture: SinusoidalPositionsFixture,
) -> Iterator[
    FixtureRecord | Frequency | Position | Recurrence | Rotation | ShiftedPair | Unpaired
]:
    run = compute(fixture)
    tokens, width = run.angles.shape
    relation = [*rotations(fixture, run)]
    unpaired = width - 1 if width % 2 else None
    yield FixtureRecord(
        name=fixture.name,
        tokens=tokens,
        width=width,
        base=fixture.base,
        pairs=width // 2,
        unpaired_feature=unpaired,
        shift=fixture.shift,
        position_shape=run.encoding.shape,
        input_shape=run.input.shape,
    )
    yield from forward_rows(
        Frequency,
        {
            **run._asdict(),
            "pair": [feature // 2 for feature in range(width)],
            "function": ["cos" if feature % 2 else "sin" for feature in range(width)],
            "frequency_scientific": run.frequency,
        },
    )
    nodes = {**run._asdict(), "token": words_of(fixture), "embedding": fixture.embeddings}
    yield from forward_rows(Position, nodes)
    yield from recurrences(fixture, run)
    yield from relation
    if unpaired is not None and tokens:
        yield lonely_sine(run, unpaired)

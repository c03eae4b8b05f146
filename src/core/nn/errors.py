"""The errors of parameters, and those of the query, key and value projections, whose sentences are
printed. Every other layer raises a ShapeMismatch, an OutOfRange or a PartFailed."""

from __future__ import annotations

from ...errors import sentence
from ..errors import CoreError


class InitializationError(CoreError):
    """Base of the errors about names and initial values of parameters."""


class InvalidName(InitializationError):
    """Names are made of a-z, 0-9 and underscores, in words that dots separate."""

    message = sentence("parameter name", "dotted words of a-z, 0-9 and _", "{found} at byte {byte}")
    byte: int
    found: str


class DuplicateName(InitializationError):
    """Two parameters of one layer share a name."""

    message = sentence(
        "parameter {repeated}", "a name of its own", "{name}, the name of parameter {first}"
    )
    name: str
    first: int
    repeated: int


class ZeroFan(InitializationError):
    """A weight needs inputs and outputs."""

    message = sentence("{fan}", "at least 1", "0")
    fan: str


class MatrixTooLarge(InitializationError):
    """There is no memory for the values."""

    message = sentence("initial values", "a matrix that fits into memory", "{fan_in} x {fan_out}")
    fan_in: int
    fan_out: int


class QKVInputRank(CoreError):
    """The input has exactly three axes."""

    message = "Q/K/V input must have rank three [batch, tokens, model_width], got rank {rank}"
    rank: int


class QKVInputWidth(CoreError):
    """The input's last axis holds the model features."""

    message = "Q/K/V input final width must equal model width {expected}, got {actual}"
    expected: int
    actual: int


class QKVModelWidths(CoreError):
    """The three projections read one input."""

    message = "Q/K/V model widths must match, got query {query}, key {key}, value {value}"
    query: int
    key: int
    value: int


class RMSNormInputRank(CoreError):
    """A scalar has no features."""

    message = "RMSNorm input must have at least one axis"


class RMSNormInputWidth(CoreError):
    """The input's last axis holds the features that the gain is for."""

    message = "RMSNorm input feature width must be {expected}, got {actual}"
    expected: int
    actual: int


class ZeroMeanSquare(CoreError):
    """Without epsilon a row of zeros has no length to be divided by."""

    message = "RMSNorm epsilon is zero but feature row {row} has zero mean square"
    row: int


class AttentionInputRank(CoreError):
    """Queries, keys and values have exactly three axes."""

    message = sentence("attention {role}", "shape batch x tokens x width", "rank {rank}")
    role: str
    rank: int


class AttentionExtents(CoreError):
    """Queries, keys and values belong to the same tokens of the same batch."""

    message = sentence("attention {part}", "one extent", "query {query}, key {key}, value {value}")
    part: str
    query: int
    key: int
    value: int


class EmptyAttention(CoreError):
    """There is nothing to attend with."""

    message = sentence("attention {part}", "at least 1", "0")
    part: str


class AttentionWidths(CoreError):
    """A query and a key are compared feature by feature."""

    message = sentence("attention widths", "one for query and key", "query {query}, key {key}")
    query: int
    key: int


class OddWidth(CoreError):
    """Rotary positions turn features in pairs."""

    message = sentence("RoPE width", "an even number of features", "{width}")
    width: int


class RoPEInputRank(CoreError):
    """What is turned has tokens and features."""

    message = sentence("RoPE input", "at least two axes", "{rank}")
    rank: int


class RoPEInputWidth(CoreError):
    """The input's last axis holds the features that the tables are for."""

    message = sentence("RoPE input", "{expected} features", "{actual}")
    expected: int
    actual: int


class PositionOverflow(CoreError):
    """The position after the last token is beyond 64 bits."""

    message = sentence("positions", "an end below 2^64", "{offset} + {tokens}")
    offset: int
    tokens: int


class PositionRange(CoreError):
    """There are not that many positions."""

    message = sentence("positions", "{capacity} at most", "offset {offset} and {tokens} tokens")
    offset: int
    tokens: int
    capacity: int

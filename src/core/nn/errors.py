"""The typed errors of parameters and layers."""

from __future__ import annotations

from ..errors import CoreError


class InitializationError(CoreError):
    """Base of the errors about names and initial values of parameters."""


class EmptyName(InitializationError):
    """A parameter needs a name."""

    message = "parameter name must not be empty"


class EmptyNameSegment(InitializationError):
    """Dots separate segments that are not empty."""

    message = "parameter name has an empty dot-separated segment at byte {byte}"
    byte: int


class InvalidNameByte(InitializationError):
    """Names are made of a-z, 0-9, underscores and dots."""

    message = (
        "parameter name byte {byte} must be lowercase ASCII, a digit, underscore, or dot; "
        "got {found}"
    )
    byte: int
    found: str


class DuplicateName(InitializationError):
    """Two parameters of one layer share a name."""

    message = (
        'parameter name "{name}" first appears at index {first} and repeats at index {repeated}'
    )
    name: str
    first: int
    repeated: int


class ZeroFan(InitializationError):
    """A weight needs inputs and outputs."""

    message = "{fan} must be greater than zero"
    fan: str


class FanSumOverflow(InitializationError):
    """The number of inputs and outputs passes 64 bits."""

    message = "fan-in {fan_in} plus fan-out {fan_out} does not fit usize"
    fan_in: int
    fan_out: int


class MatrixTooLarge(InitializationError):
    """The number of values passes 64 bits."""

    message = "matrix shape [{fan_in},{fan_out}] does not fit usize"
    fan_in: int
    fan_out: int


class InitializationMemory(InitializationError):
    """There is no memory for the values."""

    message = "could not reserve storage for {count} initialized values"
    count: int


class LinearError(CoreError):
    """Base of the errors about linear layers."""


class LinearWeightRank(LinearError):
    """The weight is a matrix."""

    message = "linear weight must have rank two, got rank {rank}"
    rank: int


class LinearZeroWidth(LinearError):
    """Both widths are at least one."""

    message = "linear {side} width must be greater than zero"
    side: str


class LinearBiasRank(LinearError):
    """The bias is a vector."""

    message = "linear bias must have rank one, got rank {rank}"
    rank: int


class LinearBiasWidth(LinearError):
    """There is one bias for each output feature."""

    message = "linear bias width must equal output width {expected}, got {actual}"
    expected: int
    actual: int


class LinearInputRank(LinearError):
    """The input has a feature axis."""

    message = "linear input must have at least one feature axis, got rank {rank}"
    rank: int


class LinearInputWidth(LinearError):
    """The input's last axis holds the input features."""

    message = "linear input final width must equal {expected}, got {actual}"
    expected: int
    actual: int


class SwiGLUError(CoreError):
    """Base of the errors about SwiGLU layers."""


class SwiGLUProjection(SwiGLUError):
    """One of the three projections refused its weight or its input."""

    message = "SwiGLU {projection} projection: {source}"
    projection: str
    source: CoreError


class SwiGLUOperation(SwiGLUError):
    """The activation or the product of the branches was refused."""

    message = "SwiGLU {operation}: {source}"
    operation: str
    source: CoreError


class SwiGLUInputWidths(SwiGLUError):
    """Both branches read the same input."""

    message = "SwiGLU gate and up input widths must match, got {gate} and {up}"
    gate: int
    up: int


class SwiGLUHiddenWidths(SwiGLUError):
    """Both branches meet in one product."""

    message = "SwiGLU gate and up hidden widths must match, got {gate} and {up}"
    gate: int
    up: int


class SwiGLUDownWidth(SwiGLUError):
    """The down projection reads that product."""

    message = "SwiGLU down input width must equal hidden width {hidden}, got {down}"
    hidden: int
    down: int


class QKVError(CoreError):
    """Base of the errors about query, key and value projections."""


class QKVProjection(QKVError):
    """One of the three projections refused its weight or its input."""

    message = "{projection} projection: {source}"
    projection: str
    source: CoreError


class QKVInputRank(QKVError):
    """The input has exactly three axes."""

    message = "Q/K/V input must have rank three [batch, tokens, model_width], got rank {rank}"
    rank: int


class QKVInputWidth(QKVError):
    """The input's last axis holds the model features."""

    message = "Q/K/V input final width must equal model width {expected}, got {actual}"
    expected: int
    actual: int


class QKVModelWidths(QKVError):
    """The three projections read one input."""

    message = "Q/K/V model widths must match, got query {query}, key {key}, value {value}"
    query: int
    key: int
    value: int


class QKVHeadWidths(QKVError):
    """The three projections share one head width."""

    message = "Q/K/V head widths must match, got query {query}, key {key}, value {value}"
    query: int
    key: int
    value: int

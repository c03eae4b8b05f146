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


class AttentionError(CoreError):
    """Base of the errors about attention heads."""


class AttentionWeightRank(AttentionError):
    """Every weight is a matrix, features written by features read."""

    message = "attention {role} weight must have rank two, got rank {rank}"
    role: str
    rank: int


class AttentionZeroWidth(AttentionError):
    """Every weight reads and writes at least one feature."""

    message = "attention {role} weight must have no width of zero"
    role: str


class AttentionModelWidths(AttentionError):
    """Queries, keys and values are projected from one input."""

    message = "attention model widths must match, got query {query}, key {key}, value {value}"
    query: int
    key: int
    value: int


class AttentionScoreWidths(AttentionError):
    """A score is a dot product of a query and a key."""

    message = "attention query and key widths must match, got {query} and {key}"
    query: int
    key: int


class AttentionInputRank(AttentionError):
    """The input has an axis of tokens and one of features."""

    message = "attention input must have rank at least two [tokens, model_width], got rank {rank}"
    rank: int


class AttentionInputWidth(AttentionError):
    """The input's last axis holds the model features."""

    message = "attention input final width must equal model width {expected}, got {actual}"
    expected: int
    actual: int


class AttentionNoHeads(AttentionError):
    """There is something to concatenate."""

    message = "attention needs at least one head"


class AttentionHeadModelWidths(AttentionError):
    """All heads read one input."""

    message = "attention head {head} must read model width {expected}, got {actual}"
    head: int
    expected: int
    actual: int


class AttentionOutputWidth(AttentionError):
    """The output projection reads the features of all heads."""

    message = "attention output weight must read {expected} concatenated features, got {actual}"
    expected: int
    actual: int


class AffineError(CoreError):
    """Base of the errors about affine maps with out-by-in weights."""


class AffineWeightRank(AffineError):
    """The weight is a matrix."""

    message = "affine weight must have rank two [outputs, inputs], got rank {rank}"
    rank: int


class AffineZeroWidth(AffineError):
    """Both widths are at least one."""

    message = "affine weight must have no width of zero, got shape {weight}"
    weight: tuple[int, ...]


class AffineBiasShape(AffineError):
    """There is one bias for each output feature."""

    message = "affine bias must have shape {expected}, got {actual}"
    expected: tuple[int, ...]
    actual: tuple[int, ...]


class AffineInputRank(AffineError):
    """The input has a feature axis."""

    message = "affine input must have at least one feature axis, got rank {rank}"
    rank: int


class AffineInputWidth(AffineError):
    """The input's last axis holds the input features."""

    message = "affine input final width must equal {expected}, got {actual}"
    expected: int
    actual: int


class LayerNormError(CoreError):
    """Base of the errors about layer normalisation."""


class LayerNormParameterRank(LayerNormError):
    """Gain and shift are vectors."""

    message = "layer norm {role} must have rank one, got rank {rank}"
    role: str
    rank: int


class LayerNormZeroWidth(LayerNormError):
    """There is at least one feature."""

    message = "layer norm {role} must have a width greater than zero"
    role: str


class LayerNormParameterWidths(LayerNormError):
    """Each feature has a gain and a shift."""

    message = "layer norm gain and shift widths must match, got {gain} and {shift}"
    gain: int
    shift: int


class LayerNormEpsilon(LayerNormError):
    """A constant row has no variance, and would be divided by zero."""

    message = "layer norm epsilon must be greater than zero, got {epsilon}"
    epsilon: float


class LayerNormInputRank(LayerNormError):
    """The input has a feature axis."""

    message = "layer norm input must have at least one feature axis, got rank {rank}"
    rank: int


class LayerNormInputWidth(LayerNormError):
    """The input's last axis holds the features that are normalised."""

    message = "layer norm input final width must equal {expected}, got {actual}"
    expected: int
    actual: int


class EncoderError(CoreError):
    """Base of the errors about encoder blocks and stacks."""


class MLPHiddenWidths(EncoderError):
    """The second map reads what the first one writes."""

    message = "MLP hidden widths must match, got {written} written and {read} read"
    written: int
    read: int


class EncoderWidths(EncoderError):
    """Residual sums need one width everywhere."""

    message = "encoder {part} must have the model width {expected}, got {actual}"
    part: str
    expected: int
    actual: int


class EncoderNoBlocks(EncoderError):
    """A stack has at least one block."""

    message = "encoder stack needs at least one block"


class EncoderMaskCount(EncoderError):
    """Every block's attention has a mask, or None, of its own."""

    message = "encoder stack of {blocks} blocks needs as many masks, got {masks}"
    blocks: int
    masks: int


class RNNError(CoreError):
    """Base of the errors about simple recurrent cells and the heads that read them."""


class RNNActivation(RNNError):
    """The activation is one of those that are known."""

    message = "RNN activation must be one of {known}, got {activation}"
    activation: str
    known: str


class RNNShape(RNNError):
    """Widths, batch and steps fit each other, and none is zero."""

    message = "RNN {part} must have shape {expected}, got {actual}"
    part: str
    expected: str
    actual: tuple[int, ...]


class RNNNoSteps(RNNError):
    """A last state needs a first observation."""

    message = "RNN input must have at least one step"


class RNNOverflow32(RNNError):
    """Single precision ends at 3.4e38."""

    message = "RNN {part} must stay within the range of float32"
    part: str


class ClippingError(CoreError):
    """Base of the errors about clipping gradients."""


class ClippingThreshold(ClippingError):
    """A gradient is clipped to a length."""

    message = "clipping threshold must be positive and finite, got {threshold}"
    threshold: float


class ClippingNorm(ClippingError):
    """The norm itself is a float64."""

    message = "gradient norm must be finite, got {norm}"
    norm: float


class GatedCellError(CoreError):
    """Base of the errors about GRU and LSTM layers."""


class GatedCellShape(GatedCellError):
    """Widths, batch and steps fit each other, and no width and no sequence is empty."""

    message = "{cell} {part} must have shape {expected}, got {actual}"
    cell: str
    part: str
    expected: str
    actual: tuple[int, ...]


class TokenError(CoreError):
    """Base of the errors about words and their ids."""


class NoTokens(TokenError):
    """A text needs at least one word."""

    message = "text must hold at least one word"


class UnknownToken(TokenError):
    """Every word needs an id."""

    message = "token {position} is not in the vocabulary: {token}"
    position: int
    token: str


class RepeatedVocabularyToken(TokenError):
    """Every word of a vocabulary has one id."""

    message = "vocabulary token {token} has the ids {first} and {repeated}"
    token: str
    first: int
    repeated: int


class PatchError(CoreError):
    """Base of the errors about cutting an image into patches."""


class PatchImageShape(PatchError):
    """An image has rows, columns and channels."""

    message = "image must have three axes [height, width, channels], got shape {shape}"
    shape: tuple[int, ...]


class PatchSide(PatchError):
    """Patches are squares that cover the image without a rest."""

    message = "patch side {side} must divide the image's height {height} and width {width}"
    side: int
    height: int
    width: int


class PatchParameterShape(PatchError):
    """The projection reads a patch, and every token has a position."""

    message = "patch {part} must have shape {expected}, got {actual}"
    part: str
    expected: str
    actual: tuple[int, ...]

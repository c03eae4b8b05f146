"""Mistakes in the ports in PyTorch, and what blame has to say of each."""

from typing import NamedTuple


class Made(NamedTuple):
    """A mistake of a port: what blame has to name, first, and in all."""

    trace: str
    bug: str
    first: str
    also: str = ""  # the operation's own derivative
    name: str = ""  # of a hypothesis


MADE = [
    Made(
        "swiglu",
        "GELU",
        "POSITION-FORWARD.gate-silu",
        "POSITION-BACKWARD.gate-gradient",
        "GELU (erf) for SiLU",
    ),
    Made(
        "swiglu",
        "swapped",
        "POSITION-FORWARD.gate-pre",
        "POSITION-FORWARD.up POSITION-BACKWARD.input-gradient PARAMETER-GRADIENT.values",
        "gate-weight and up-weight exchanged",
    ),
    Made(
        "swiglu",
        "layout",
        "POSITION-FORWARD.output",
        "POSITION-BACKWARD.gated-gradient PARAMETER-GRADIENT.values",
        "weight in the other layout",
    ),
    Made("swiglu", "no slope", "POSITION-BACKWARD.gate-gradient", "", "SiLU without its slope"),
    Made("swiglu", "detached", "POSITION-BACKWARD.input-gradient", "", "term left out"),
    Made("swiglu", "mean", "PARAMETER-GRADIENT.values", "", "mean for sum"),
    Made(
        "attention-head",
        "queries",
        "SCORE.dot-product",
        "QUERY-BACKWARD.query-gradient SOURCE-BACKWARD.key-gradient",
    ),
    Made(
        "attention-head",
        "no scale",
        "SCORE.scaled",
        "QUERY-BACKWARD.score-gradient",
        "1 / sqrt(d) left out",
    ),
    Made(
        "attention-head",
        "other width",
        "SCORE.scaled",
        "QUERY-BACKWARD.score-gradient",
        "the model's width for the head's",
    ),
    Made("attention-head", "other axis", "SCORE.weight", "QUERY-BACKWARD.scaled-gradient"),
    Made("attention-head", "sign", "PARAMETER-GRADIENT.values", "", "sign"),
    Made(
        "encoder-block",
        "epsilon",
        "LAYER-NORM.output",
        "RESIDUAL-BACKWARD.total PARAMETER-GRADIENT.values",
        "epsilon outside the root",
    ),
    Made(
        "encoder-block",
        "n - 1",
        "LAYER-NORM.variance",
        "RESIDUAL-BACKWARD.total",
        "variance by n - 1",
    ),
    Made("encoder-block", "no mask", "ATTENTION-HEAD.weights", "", "mask left out"),
    Made("encoder-block", "mask one further", "ATTENTION-HEAD.weights", "", "mask one further"),
    Made(
        "encoder-block",
        "interleaved",
        "ATTENTION.concatenated",
        "ATTENTION-HEAD-BACKWARD.output-gradient",
        "heads interleaved",
    ),
    Made("encoder-block", "no bias", "MLP.hidden-pre", "", "bias left out"),
    Made(
        "encoder-block",
        "GELU",
        "MLP.hidden",
        "MLP-BACKWARD.hidden-pre-gradient",
        "GELU (tanh) for ReLU",
    ),
    Made(
        "encoder-block",
        "no residual",
        "RESIDUAL.output",
        "RESIDUAL-BACKWARD.total",
        "residual left out",
    ),
    Made("gru", "one bias", "GATES.reset-pre", "", "bias left out"),
    Made(
        "gru",
        "reset before",
        "STATE.recurrent-affine",
        "STATE.recurrent-term STEP-GRADIENT.recurrent-affine-gradient "
        "STEP-GRADIENT.reset-gradient STEP-GRADIENT.state-gradient PARAMETER-GRADIENT.values "
        "INITIAL-GRADIENT.state-gradient",
        "reset before the product",
    ),
    Made(
        "gru",
        "update turned",
        "STATE.kept",
        "STATE.written STEP-GRADIENT.candidate-gradient STEP-GRADIENT.update-gradient "
        "STEP-GRADIENT.state-gradient INITIAL-GRADIENT.state-gradient",
        "update gate the other way round",
    ),
    Made(
        "gru",
        "sign back",
        "STEP-GRADIENT.update-gradient",
        "",
        "sign",
    ),
    Made(
        "lstm",
        "gates in another order",
        "GATES.input-pre",
        "GATES.forget-pre STEP-GRADIENT.state-gradient STEP-GRADIENT.input-gradient "
        "INITIAL-GRADIENT.state-gradient PARAMETER-GRADIENT.values",
        "forget and input exchanged",
    ),
    Made(
        "lstm",
        "sigmoid",
        "GATES.candidate",
        "STEP-GRADIENT.candidate-pre-gradient",
        "sigmoid for tanh",
    ),
    Made(
        "lstm", "no tanh", "MEMORY.cell-tanh", "STEP-GRADIENT.cell-gradient", "activation left out"
    ),
    Made("lstm", "detached", "STEP-GRADIENT.cell-gradient", ""),
    Made(
        "lstm",
        "no half",
        "PREDICTION.loss",
        "STEP-GRADIENT.state-gradient PARAMETER-GRADIENT.values",
        "half of the squares left out",
    ),
    Made(
        "linear-layers",
        "layout",
        "CELL.weighted-sum",
        "POSITION-GRADIENT.input-gradient WEIGHT-GRADIENT.values",
        "weight in the other layout",
    ),
    Made("linear-layers", "no bias", "CELL.result", "BIAS-GRADIENT.values", "bias left out"),
    Made(
        "linear-layers", "turned", "WEIGHT-GRADIENT.values", "", "gradient of a weight transposed"
    ),
    Made("linear-layers", "mean", "BIAS-GRADIENT.values", "", "mean for sum"),
    Made(
        "qkv",
        "layout",
        "PROJECTION.output",
        "WEIGHT-GRADIENT.values BACKWARD.input-gradient",
        "weight in the other layout",
    ),
    Made("qkv", "detached", "BACKWARD.input-gradient", "", "term left out"),
    Made("qkv", "mean", "WEIGHT-GRADIENT.values", "", "mean for sum"),
]

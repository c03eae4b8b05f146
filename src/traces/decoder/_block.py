"""Records of a decoder block, forward and backward."""

from collections.abc import Callable, Mapping

from ...core.autodiff import Tensor
from ...core.nn.decoder_block import DecoderBlock, DecoderBlockPass
from ...core.nn.rms_norm import RMSNormPass
from .. import _chapter as chapter
from .. import _lanes

Weight = Callable[[str], str]
"""The formula of a parameter by its name."""

ROWS, HIDDEN = "batch tokens width", "batch tokens hidden"
PARAMETERS = (
    "attention_gain",
    *(f"{name}_weight" for name in _lanes.WEIGHTS),
    "ffn_gain",
    "gate_weight",
    "up_weight",
    "down_weight",
)


def norm(name: str, source: str, weight: Weight) -> tuple[_lanes.Declared, ...]:
    """Of an RMSNorm called `attention` or `ffn` that reads the tensor of this class."""
    kind = name.capitalize()
    return (
        (f"{name}_gain", "width", "what scales each feature", weight(f"{name}_gain")),
        (
            f"{name}_mean_square",
            "row_shape",
            "of each row's features",
            f"reshape(mean({source}.values * {source}.values, axis=2), batch, tokens, 1)",
        ),
        (
            f"{name}_inverse_rms",
            "row_shape",
            "what a row is multiplied by",
            f"1 / sqrt({kind}MeanSquare.values + epsilon)",
        ),
        (
            f"{name}_normalized",
            ROWS,
            "rows of one length",
            f"{source}.values * {kind}InverseRms.values",
        ),
        (f"{name}_norm", ROWS, "these scaled", f"{kind}Normalized.values * {kind}Gain.values"),
    )


def norm_gradients(name: str) -> tuple[dict[str, chapter.Formula], str]:
    """Of the gain and of what is normalised; and the part of what is read."""
    kind = name.capitalize()
    upstream, rows = f"{kind}NormGradient.values", f"{kind}Normalized.values"
    into = f"{kind}NormalizedGradient.values"
    mean = f"reshape(mean({into} * {rows}, axis=2), batch, tokens, 1)"
    return {
        f"{name}_gain": f"sum({_lanes.flat(f'{upstream} * {rows}')}, axis=0)",
        f"{name}_normalized": f"{upstream} * {kind}Gain.values",
    }, f"{kind}InverseRms.values * ({into} - {rows} * {mean})"


def forward(source: chapter.Formula, weight: Weight = _lanes.given) -> tuple[_lanes.Declared, ...]:
    """Of a block whose input and whose parameters have these formulas."""
    gate, up, down = (weight(name) for name in PARAMETERS[-3:])
    return (
        ("input", ROWS, "what is read", source),
        *norm("attention", "Input", weight),
        *_lanes.forward("AttentionNorm", weight),
        ("attention", ROWS, "heads mixed", "Merged.values @ OutputWeight.values"),
        ("after_attention", ROWS, "added to what is read", "Input.values + Attention.values"),
        *norm("ffn", "AfterAttention", weight),
        ("gate_weight", "width hidden", "makes the gate", gate),
        ("up_weight", "width hidden", "makes what is gated", up),
        ("down_weight", "hidden width", "leads back", down),
        ("gate_pre", HIDDEN, "the gate's input", "FfnNorm.values @ GateWeight.values"),
        ("gate", HIDDEN, "the gate", "silu(GatePre.values)"),
        ("up", HIDDEN, "the other branch", "FfnNorm.values @ UpWeight.values"),
        ("gated", HIDDEN, "that branch, gated", "Gate.values * Up.values"),
        ("ffn", ROWS, "its result", "Gated.values @ DownWeight.values"),
        ("output", ROWS, "added again", "AfterAttention.values + Ffn.values"),
    )


def gradients(upstream: chapter.Formula) -> Mapping[str, chapter.Formula]:
    """Of the tensors of `forward`, from the output's gradient on."""
    (ffn, into_ffn), (attention, into_attention) = (
        norm_gradients(name) for name in ("ffn", "attention")
    )
    flat, lanes = _lanes.flat, dict(_lanes.backward("AttentionNorm", "AttentionGradient.values"))
    return {
        "output": upstream,
        "ffn": "OutputGradient.values",
        "gated": "FfnGradient.values @ DownWeight.values.T",
        "down_weight": f"{flat('Gated.values')}.T @ {flat('FfnGradient.values')}",
        "up": "GatedGradient.values * Gate.values",
        "gate": "GatedGradient.values * Up.values",
        "gate_pre": "GateGradient.values * silu_slope(GatePre.values)",
        "up_weight": f"{flat('FfnNorm.values')}.T @ {flat('UpGradient.values')}",
        "gate_weight": f"{flat('FfnNorm.values')}.T @ {flat('GatePreGradient.values')}",
        "ffn_norm": "UpGradient.values @ UpWeight.values.T"
        " + GatePreGradient.values @ GateWeight.values.T",
        **ffn,
        "after_attention": f"OutputGradient.values + {into_ffn}",
        "attention": "AfterAttentionGradient.values",
        **lanes,
        **attention,
        "input": f"AfterAttentionGradient.values + {into_attention}",
    }


def drawn(name: str) -> str:
    """The formula of a block's parameter: gains are one, weights are drawn one after the other."""
    square, inner = "width * width", "width * hidden"
    before = {
        "query_weight": "0",
        "key_weight": square,
        "value_weight": f"2 * {square}",
        "output_weight": f"3 * {square}",
        "gate_weight": f"4 * {square}",
        "up_weight": f"4 * {square} + {inner}",
        "down_weight": f"4 * {square} + 2 * {inner}",
    }
    shapes = {"gate_weight": "width, hidden", "up_weight": "width, hidden"}
    shapes["down_weight"] = "hidden, width"
    if name not in before:
        return "1 + zeros(width)"
    block = f"layer * (4 * {square} + 3 * {inner})"
    words = f"vocabulary * width + {block} + {before[name]}"
    return f"xavier_uniform(fixture.seed, {words}, {shapes.get(name, 'width, width')})"


def nodes(layer: DecoderBlock, done: DecoderBlockPass) -> dict[str, Tensor]:
    """The tensors of a pass by the names that the records have."""
    ffn, weights = done.ffn, (layer.ffn.gate, layer.ffn.up, layer.ffn.down)
    return {
        "input": done.input,
        **_norm_nodes("attention", done.attention_norm),
        "attention_gain": layer.attention_norm.gain.tensor,
        **_lanes.nodes(layer.attention, done.attention),
        "attention": done.attention.output,
        "after_attention": done.after_attention,
        **_norm_nodes("ffn", done.ffn_norm),
        "ffn_gain": layer.ffn_norm.gain.tensor,
        **dict(zip(PARAMETERS[-3:], (linear.weight.tensor for linear in weights), strict=True)),
        "gate_pre": ffn.gate_pre,
        "gate": ffn.gate_silu,
        "up": ffn.up,
        "gated": ffn.gated,
        "ffn": ffn.output,
        "output": done.output,
    }


def _norm_nodes(name: str, done: RMSNormPass) -> dict[str, Tensor]:
    return {
        f"{name}_mean_square": done.mean_square,
        f"{name}_inverse_rms": done.inverse_rms,
        f"{name}_normalized": done.normalized,
        f"{name}_norm": done.output,
    }

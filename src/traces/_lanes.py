"""Records of causal attention in several heads with rotary positions, forward and backward."""

from collections.abc import Callable, Mapping
from typing import Any

from ..core.autodiff import Tensor
from ..core.nn.dot_product import scale_of
from ..core.nn.parameters import named_parameter
from ..core.nn.rope import RoPE
from ..core.nn.rotary_attention import RotaryAttention, RotaryAttentionPass, head_width
from . import _chapter as chapter
from ._rotary import neighbours
from ._tape import require_steps

WEIGHTS = ("query", "key", "value", "output")
HEADS = "batch heads tokens head_width"
LANES = "lanes tokens tokens"  # every head of every sequence
Declared = tuple[str, str, str, chapter.Formula]


def layer_of(fixture: Any) -> RotaryAttention:
    """The layer of a fixture with the four weights, heads, positions and a base."""
    require_steps("positions", fixture.positions)
    query, key, value, output = (
        named_parameter(f"attention.{name}.weight", getattr(fixture, f"{name}_weight"))
        for name in WEIGHTS
    )
    width = head_width(fixture.input.shape[-1], fixture.heads)
    rope = RoPE(width, fixture.positions, fixture.base)
    return RotaryAttention.from_weights(query, key, value, output, fixture.heads, rope)


def sizes(layer: RotaryAttention) -> dict[str, Any]:
    """What a first record says of the heads and their positions."""
    return {
        "heads": layer.heads,
        "head_width": layer.head_width,
        "pairs": layer.head_width // 2,
        "positions": layer.rope.positions,
        "base": layer.rope.base,
        "scale": scale_of(layer.head_width),
    }


def given(name: str) -> str:
    """The formula of a weight that the fixture has."""
    return f"fixture.{name}"


def split(rows: str) -> str:
    return f"reshape({rows}, batch, tokens, heads, head_width).swapaxes(1, 2)"


def merged(lanes: str) -> str:
    return f"reshape({lanes}.swapaxes(1, 2), batch, tokens, width)"


def flat(rows: str) -> str:
    return f"reshape({rows}, batch * tokens, -1)"


def in_lanes(grid: str) -> str:
    return f"reshape({grid}, lanes, tokens, tokens)"


def in_heads(grid: str) -> str:
    return f"reshape({grid}, batch, heads, tokens, tokens)"


MIXED = in_heads("Weights.values")


def turn(lanes: str, *, back: bool = False) -> str:
    return neighbours(lanes, "batch, heads, tokens, head_width", "offset", back=back)


def forward(source: str, weight: Callable[[str], str] = given) -> tuple[Declared, ...]:
    """Of attention that reads the tensor of this class, with the formula of each weight."""
    turned_keys = "TurnedKey.values.swapaxes(2, 3)"
    return (
        *(
            (f"{name}_weight", "width width", meaning, weight(f"{name}_weight"))
            for name, meaning in zip(
                WEIGHTS,
                ("makes queries", "makes keys", "makes values", "mixes the heads"),
                strict=True,
            )
        ),
        ("query", HEADS, "what is looked for", split(f"{source}.values @ QueryWeight.values")),
        ("key", HEADS, "what is found by", split(f"{source}.values @ KeyWeight.values")),
        ("value", HEADS, "what is handed over", split(f"{source}.values @ ValueWeight.values")),
        ("turned_query", HEADS, "queries where they stand", turn("Query.values")),
        ("turned_key", HEADS, "keys where they stand", turn("Key.values")),
        ("scores", LANES, "queries by keys", in_lanes(f"TurnedQuery.values @ {turned_keys}")),
        ("scaled", LANES, "scores times the scale", "Scores.values * scale"),
        ("weights", LANES, "shares of what is seen", "causal_softmax(Scaled.values)"),
        ("head_outputs", HEADS, "values mixed", f"{MIXED} @ Value.values"),
        ("merged", "batch tokens width", "head after head", merged("HeadOutputs.values")),
    )


def backward(source: str, output: str) -> Mapping[str, chapter.Formula]:
    """Of the tensors of `forward`, where `output` is the gradient of what is made of `merged`."""
    rows = {name: merged(f"{name.capitalize()}Gradient.values") for name in WEIGHTS[:3]}
    shares = "sum(Weights.values * WeightsGradient.values, axis=2)"
    means, scores = f"reshape({shares}, lanes, tokens, 1)", in_heads("ScoresGradient.values")
    return {
        "merged": f"{output} @ OutputWeight.values.T",
        "output_weight": f"{flat('Merged.values')}.T @ {flat(output)}",
        "head_outputs": split("MergedGradient.values"),
        "weights": in_lanes("HeadOutputsGradient.values @ Value.values.swapaxes(2, 3)"),
        "value": f"{MIXED}.swapaxes(2, 3) @ HeadOutputsGradient.values",
        "scaled": f"Weights.values * (WeightsGradient.values - {means})",
        "scores": "ScaledGradient.values * scale",
        "turned_query": f"{scores} @ TurnedKey.values",
        "turned_key": f"{scores}.swapaxes(2, 3) @ TurnedQuery.values",
        "query": turn("TurnedQueryGradient.values", back=True),
        "key": turn("TurnedKeyGradient.values", back=True),
        **{f"{name}_weight": f"{flat(f'{source}.values')}.T @ {flat(rows[name])}" for name in rows},
        source_node(source): " + ".join(
            f"{rows[name]} @ {name.capitalize()}Weight.values.T" for name in rows
        ),
    }


def source_node(source: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in source)[1:]


def nodes(layer: RotaryAttention, done: RotaryAttentionPass) -> dict[str, Tensor]:
    """The tensors of a pass by the names that the records have."""
    linears = (*layer.projections.projections.values(), layer.output)
    return {
        **{
            f"{name}_weight": linear.weight.tensor
            for name, linear in zip(WEIGHTS, linears, strict=True)
        },
        "query": done.query,
        "key": done.key,
        "value": done.value,
        "turned_query": done.rotated_query,
        "turned_key": done.rotated_key,
        "scores": done.lanes.scores,
        "scaled": done.lanes.scaled,
        "weights": done.lanes.weights,
        "head_outputs": done.head_outputs,
        "merged": done.merged,
    }

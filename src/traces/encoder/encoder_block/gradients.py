"""The gradients of an encoder block's parameters: how they come from what its trace prints."""

from ....report.records import Record, field
from ....report.values import Int, Reals, Shape, Word
from .forward import ATTENDED, MLP_READS, NORMS, of

_HEAD = "index_after('heads', name)"
_ROLES = ("query", "key", "value")


def _is(part: str) -> str:
    return f"name.endswith('{part}')"


def _formulas() -> dict[str, str]:
    """A row of each parameter's gradient: one output's adjoints, times the inputs."""
    formulas = {
        "name == 'embedding.weight'": (
            "sum(ResidualBackward(sum='first').total[Input.token_id == row], axis=0)"
        )
    }
    for layer in NORMS:
        sent = f"LayerNormBackward(layer='{layer}').output_gradient"
        normalized = f"LayerNormRow(layer='{layer}').normalized"
        formulas[_is(f"{layer}_norm.gain")] = f"sum({sent} * {normalized}, axis=0)"
        formulas[_is(f"{layer}_norm.shift")] = f"sum({sent}, axis=0)"
    for role in _ROLES:
        sent = f"AttentionHeadBackward(head={_HEAD}).{role}_gradient"
        for condition, product in of(ATTENDED, f"{sent}.T[row] @ x").items():
            formulas[_both(_is(f".{role}.weight"), condition)] = product
    formulas[_is("attention.output.weight")] = (
        "AttentionBackward.output_gradient.T[row] @ reshape(AttentionRow.concatenated, tokens, -1)"
    )
    for condition, product in of(MLP_READS, "MLPBackward.hidden_pre_gradient.T[row] @ x").items():
        formulas[_both(_is("up.weight"), condition)] = product
    return formulas | {
        _is("up.bias"): "sum(MLPBackward.hidden_pre_gradient, axis=0)",
        _is("down.weight"): "MLPBackward.output_gradient.T[row] @ MLPRow.hidden",
        _is("down.bias"): "sum(MLPBackward.output_gradient, axis=0)",
    }


def _both(condition: str, other: str) -> str:
    return f"{condition} and {other}" if other else condition


def _parameters() -> dict[str, str]:
    """Where the fixture has each row."""
    norms = {
        _is(f"{layer}_norm.{part}"): f"fixture.{layer}_norm_{part}"
        for layer in NORMS
        for part in ("gain", "shift")
    }
    heads = {_is(f".{role}.weight"): f"fixture.{role}_weights[{_HEAD}][row]" for role in _ROLES}
    return {
        "name == 'embedding.weight'": "fixture.embeddings[row]",
        **norms,
        **heads,
        _is("attention.output.weight"): "fixture.attention_output_weight[row]",
        _is("up.weight"): "fixture.up_weight[row]",
        _is("up.bias"): "fixture.up_bias",
        _is("down.weight"): "fixture.down_weight[row]",
        _is("down.bias"): "fixture.down_bias",
    }


class ParameterGradient(Record):
    """One row of a parameter's gradient, added up over all positions."""

    name: Word = field("the parameter's dotted name", aligns=True)
    row: Int | None = field(
        "of a matrix, 0-based: a token id of an embedding, else the feature written",
        aligns=True,
        omitted=True,
    )
    shape: Shape = field("of the whole parameter: tokens x features, else out x in")
    values: Reals = field(
        "d loss / d this row", shape="columns", formula=_formulas(), gradient_of=_parameters()
    )

    @property
    def columns(self) -> int:
        """How many values a row has."""
        return self.shape[-1]

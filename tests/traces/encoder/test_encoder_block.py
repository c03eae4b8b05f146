"""One encoder block against the chapter, the known, difference quotients and its own laws."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff.errors import NoClasses
from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.errors import FixtureError
from llm_trace.report.records import Record
from llm_trace.traces import _proverb
from llm_trace.traces.encoder.encoder_block import (
    EncoderBlockFixture,
    FixtureRecord,
    Input,
    compute,
)
from llm_trace.traces.encoder.encoder_block.backward import (
    AttentionBackward,
    AttentionHeadBackward,
    LayerNormBackward,
    MLPBackward,
    ParameterGradient,
    ResidualBackward,
)
from llm_trace.traces.encoder.encoder_block.forward import (
    AttentionHeadRow,
    AttentionRow,
    LayerNormRow,
    MLPRow,
    Residual,
)

from ...known import close, forward, oracle, table
from ..proverb_data import of, records, rounded

CHOICES = [(norm, mask) for norm in ("pre", "post") for mask in ("none", "causal")]


def rows(found: list[Any], field: str, /, **wanted: Any) -> Array:
    """One field of the records whose other fields are as wanted."""
    chosen = [r for r in found if all(getattr(r, key) == value for key, value in wanted.items())]
    assert chosen
    return np.array([getattr(record, field) for record in chosen])


def stages(found: list[Record]) -> dict[str, Array]:
    """Every named (tokens, ...) array of the forward pass, by the chapter's name for it."""
    norms, residuals, mlp = of(LayerNormRow, found), of(Residual, found), of(MLPRow, found)
    return {
        "H0": rows(of(Input, found), "input"),
        "LN1": rows(norms, "output", layer="first"),
        "B_att": rows(of(AttentionRow, found), "output"),
        "C": rows(of(AttentionRow, found), "concatenated"),
        "U": rows(residuals, "output", sum="first"),
        "LN2": rows(norms, "output", layer="second"),
        "Z_mlp": rows(mlp, "hidden_pre"),
        "J_mlp": rows(mlp, "hidden"),
        "B_mlp": rows(mlp, "output"),
        "H1": rows(residuals, "output", sum="second"),
    }


# The chapter ------------------------------------------------------------------------------------


def test_the_stages_of_begins_are_the_chapters() -> None:
    found = records("encoder-block")
    values = stages(found)
    final = rows(of(LayerNormRow, found), "output", layer="final")
    shown = [*(values[name] for name in ("H0", "LN1", "B_att", "U", "LN2", "B_mlp", "H1")), final]
    printed = table(23)
    assert [rounded(stage[6]) for stage in shown] == [row[1:] for row in printed]


def test_the_statistics_are_the_chapters() -> None:
    norms = of(LayerNormRow, records("encoder-block"))
    columns = [
        rows(norms, name, layer=layer)
        for layer in ("first", "second")
        for name in ("mean", "variance")
    ]
    found = [rounded(row) for row in np.stack(columns, axis=1)]
    assert found == [row[2:] for row in table(24)]


@pytest.mark.parametrize(
    ("number", "stage"),
    [(25, "LN1"), (26, "B_att"), (27, "U"), (28, "LN2"), (29, "B_mlp"), (30, "H1"), (31, "final")],
)
def test_every_row_of_every_stage_is_the_chapters(number: int, stage: str) -> None:
    found = records("encoder-block")
    final = rows(of(LayerNormRow, found), "output", layer="final")
    words = [record.token for record in of(Input, found)]
    printed = [
        [str(position), word, *rounded(row)]
        for position, (word, row) in enumerate(
            zip(words, (stages(found) | {"final": final})[stage], strict=True)
        )
    ]
    assert printed == table(number)


def test_the_forward_pass_agrees_to_the_last_digits() -> None:
    expected = forward("encoder")
    found = records("encoder-block")
    for name, values in stages(found).items():
        wanted = {"LN1": ("LN1", "X"), "LN2": ("LN2", "R")}.get(name, (name,))
        reference: Any = forward() if name == "H0" else expected
        for key in wanted:
            reference = reference[key]
        assert close(values, reference), name
    norms = of(LayerNormRow, found)
    for layer, key in (("first", "LN1"), ("second", "LN2"), ("final", "LN_final")):
        for name in ("mean", "variance"):
            assert close(rows(norms, name, layer=layer), expected[key][name])
    assert close(rows(norms, "output", layer="final"), expected["LN_final"]["H_enc"])
    heads = of(AttentionHeadRow, found)
    names = {"query": "Q", "key": "K", "value": "V", "scores": "S", "weights": "A", "output": "O"}
    for head in (0, 1):
        for name, key in names.items():
            assert close(rows(heads, name, head=head), expected[f"head{head + 1}"][key])


# The known -------------------------------------------------------------------------------------

CASES = (
    "ones_on_H_enc",
    "nonuniform_on_H_enc",
    "ones_on_H1",
    "nonuniform_on_H1",
    "nonuniform_on_H_enc_affine_LN",
    "nonuniform_on_H_enc_causal",
)
PARAMETERS = {
    "embedding.weight": "E_vocab",
    "blocks.0.first_norm.gain": "gamma_1",
    "blocks.0.first_norm.shift": "beta_1",
    "blocks.0.attention.heads.0.query.weight": "head1_W_Q",
    "blocks.0.attention.heads.0.key.weight": "head1_W_K",
    "blocks.0.attention.heads.0.value.weight": "head1_W_V",
    "blocks.0.attention.heads.1.query.weight": "head2_W_Q",
    "blocks.0.attention.heads.1.key.weight": "head2_W_K",
    "blocks.0.attention.heads.1.value.weight": "head2_W_V",
    "blocks.0.attention.output.weight": "W_O",
    "blocks.0.second_norm.gain": "gamma_2",
    "blocks.0.second_norm.shift": "beta_2",
    "blocks.0.mlp.up.weight": "W_1",
    "blocks.0.mlp.up.bias": "b_1",
    "blocks.0.mlp.down.weight": "W_2",
    "blocks.0.mlp.down.bias": "b_2",
    "final_norm.gain": "gamma_F",
    "final_norm.shift": "beta_F",
}


def oracle_fields(inputs: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "upstream": np.array(inputs["upstream"]),
        "mask": "causal" if inputs["causal"] else "none",
        "final_norm": "yes" if inputs["upstream_on"] == "H_enc" else "no",
    }
    for name, key in (("first", "LN1"), ("second", "LN2"), ("final", "LNF")):
        fields[f"{name}_norm_gain"] = np.array(inputs["layernorm"][key]["gamma"])
        fields[f"{name}_norm_shift"] = np.array(inputs["layernorm"][key]["beta"])
    return fields


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_the_oracles(case: str) -> None:
    known = oracle("encoder_block", case)
    fields, expected = oracle_fields(known["inputs"]), known["results"]
    found = records("encoder-block", **fields)
    residuals, heads = of(ResidualBackward, found), of(AttentionHeadBackward, found)
    mlp, norms = of(MLPBackward, found), of(LayerNormBackward, found)
    backward = {
        "H1": rows(residuals, "bypass", sum="second"),
        "J_mlp": rows(mlp, "hidden_gradient"),
        "Z_mlp": rows(mlp, "hidden_pre_gradient"),
        "R": rows(mlp, "input_gradient"),
        "U_via_LN2": rows(residuals, "branch", sum="second"),
        "U": rows(residuals, "total", sum="second"),
        "C": rows(of(AttentionBackward, found), "concatenated_gradient"),
        "X": rows(of(AttentionBackward, found), "input_gradient"),
        "H0_via_LN1": rows(residuals, "branch", sum="first"),
        "H0": rows(residuals, "total", sum="first"),
        "head1_S": rows(heads, "scores_gradient", head=0),
        "head2_S": rows(heads, "scores_gradient", head=1),
    }
    # Where the known has zeros, cancellation leaves a few units of the last place.
    slack = 3e-15
    for name, values in backward.items():
        assert np.allclose(values, expected[f"grad_{name}"], rtol=1e-11, atol=slack), name
    assert np.array_equal(rows(norms, "input_gradient", layer="second"), backward["U_via_LN2"])
    gradients = of(ParameterGradient, found)
    for parameter, key in PARAMETERS.items():
        if fields["final_norm"] == "yes" or not parameter.startswith("final"):
            values = rows(gradients, "values", name=parameter)
            wanted = np.array(expected[f"grad_{key}"]).reshape(values.shape)
            assert np.allclose(values, wanted, rtol=1e-11, atol=1e-14), parameter
    assert close(stages(found)["H1"], expected["H1"])
    if fields["final_norm"] == "yes":
        assert close(rows(of(LayerNormRow, found), "output", layer="final"), expected["H_enc"])


def test_post_norm_is_the_oracles() -> None:
    expected = oracle("post_norm_same_parameters", "results")
    norms = of(LayerNormRow, records("encoder-block", norm="post", final_norm="no"))
    assert close(rows(norms, "output", layer="first"), expected["U"])
    assert close(rows(norms, "output", layer="second"), expected["H1"])


@pytest.mark.parametrize("parameters", ["identity", "affine"])
@pytest.mark.parametrize("upstream", ["ones", "nonuniform"])
def test_a_layer_norm_alone_is_the_oracles(parameters: str, upstream: str) -> None:
    """Zero branches leave H0 for the final norm, which is then the only thing that computes."""
    known = oracle("layernorm", parameters, upstream)
    inputs, expected = known["inputs"], known["results"]
    found = records(
        "encoder-block",
        attention_output_weight=np.zeros((5, 6)),
        down_weight=np.zeros((5, 4)),
        down_bias=np.zeros(5),
        final_norm_gain=np.array(inputs["gamma"]),
        final_norm_shift=np.array(inputs["beta"]),
        upstream=np.array(inputs["upstream"]),
    )
    forward = [r for r in of(LayerNormRow, found) if r.layer == "final"]
    assert close(rows(forward, "output"), expected["y"])
    assert close(1.0 / np.sqrt(rows(forward, "variance") + 1e-5), expected["inverse_std"])
    assert close(rows(forward, "normalized").var(axis=1), expected["variance_of_xhat"])
    gradients = of(ParameterGradient, found)
    back = rows(of(LayerNormBackward, found), "input_gradient", layer="final")
    assert np.allclose(back, expected["grad_x"], rtol=1e-11, atol=2e-15)
    for name, key in (("gain", "gamma"), ("shift", "beta")):
        (values,) = rows(gradients, "values", name=f"final_norm.{name}")
        assert np.allclose(values, expected[f"grad_{key}"], rtol=1e-11, atol=1e-14)


# Its own laws -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("norm", "mask"), CHOICES)
def test_every_gradient_agrees_with_difference_quotients(norm: str, mask: str) -> None:
    rng = np.random.default_rng(3)
    scales = {name: 0.5 + rng.random(5) for name in EncoderBlockFixture.specs if "gain" in name}
    fixture = EncoderBlockFixture(norm=norm, mask=mask, **scales)
    run = compute(fixture)
    for name, leaf in run.encoder.parameters:
        value = leaf.value

        def objective(values: Array, leaf: Any = leaf) -> float:
            leaf.assign(values)
            h = run.encoder.input(fixture.ids)
            visible = None if mask == "none" else np.tri(7, dtype=np.bool_)
            return float((run.encoder(h, visible).output.value * fixture.upstream).sum())

        analytic = run.backward.adjoint(leaf)
        report = check_gradient(
            objective, value, analytic, step=1e-6, tolerance=1e-8, max_samples=9
        )
        leaf.assign(value)
        assert report.passed, name


@pytest.mark.parametrize(("norm", "mask"), CHOICES)
def test_a_bypass_hands_its_gradient_on_unchanged(norm: str, mask: str) -> None:
    found = records("encoder-block", norm=norm, mask=mask)
    residuals, mlp = of(ResidualBackward, found), of(MLPBackward, found)
    attention = of(AttentionBackward, found)
    for name, branch in (("first", attention), ("second", mlp)):
        assert np.array_equal(rows(residuals, "bypass", sum=name), rows(branch, "output_gradient"))
    for record in residuals:
        assert np.allclose(record.bypass + record.branch, record.total, rtol=0, atol=1e-15)
        assert np.abs(record.branch).max() > 1e-4


def test_with_post_norm_the_branch_alone_comes_back_beside_the_bypass() -> None:
    found = records("encoder-block", norm="post")
    residuals = of(ResidualBackward, found)
    attention = rows(of(AttentionBackward, found), "input_gradient")
    mlp = rows(of(MLPBackward, found), "input_gradient")
    assert np.array_equal(rows(residuals, "branch", sum="first"), attention)
    assert np.array_equal(rows(residuals, "branch", sum="second"), mlp)
    first = rows(of(LayerNormBackward, found), "output_gradient", layer="first")
    assert np.array_equal(rows(residuals, "total", sum="second"), first)


def test_ones_at_the_end_come_back_as_zeros() -> None:
    found = records("encoder-block", upstream=np.ones((7, 5)))
    for record in of(ParameterGradient, found):
        if not record.name.startswith("final"):
            assert np.abs(record.values).max() < 1e-14, record.name


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_weights_are_distributions_over_what_is_visible(mask: str) -> None:
    for record in of(AttentionHeadRow, records("encoder-block", mask=mask)):
        assert abs(record.weights.sum() - 1.0) < 4e-16
        seen = record.position + 1 if mask == "causal" else 7
        assert (record.weights[:seen] > 0.0).all()
        assert record.weights[seen:].tolist() == [0.0] * (7 - seen)
        assert len(record.scores) == 7


def test_the_norms_stand_where_the_choice_says() -> None:
    for norm, order in (
        ("pre", ["LAYER-NORM", "ATTENTION-HEAD", "ATTENTION", "RESIDUAL", "LAYER-NORM", "MLP"]),
        ("post", ["ATTENTION-HEAD", "ATTENTION", "RESIDUAL", "LAYER-NORM", "MLP", "RESIDUAL"]),
    ):
        kinds = [r.kind for r in records("encoder-block", norm=norm) if r.kind != "INPUT"]
        changes = [a for a, b in zip(kinds, ["", *kinds], strict=False) if a != b]
        assert changes[1:7] == order


def test_a_token_without_a_position_gets_no_gradient_and_a_repeated_one_a_sum() -> None:
    found = records("encoder-block")
    back = rows(of(ResidualBackward, found), "total", sum="first")
    table_gradient = rows(of(ParameterGradient, found), "values", name="embedding.weight")
    assert np.allclose(table_gradient[0], back[0] + back[3], rtol=0, atol=1e-15)
    assert table_gradient[6:].tolist() == [[0.0] * 5] * 3


def test_other_sizes_compute() -> None:
    rng = np.random.default_rng(8)
    fields = {
        "vocabulary": None,
        "embeddings": rng.normal(size=(4, 6)),
        "ids": (3, 0, 1),
        "query_weights": rng.normal(size=(3, 2, 6)),
        "key_weights": rng.normal(size=(3, 2, 6)),
        "value_weights": rng.normal(size=(3, 4, 6)),
        "attention_output_weight": rng.normal(size=(6, 12)),
        "up_weight": rng.normal(size=(7, 6)),
        "up_bias": rng.normal(size=7),
        "down_weight": rng.normal(size=(6, 7)),
        "down_bias": rng.normal(size=6),
        "upstream": rng.normal(size=(3, 6)),
        **{
            name: rng.normal(size=6)
            for name in EncoderBlockFixture.specs
            if name.endswith(("_norm_gain", "_norm_shift"))
        },
    }
    found = records("encoder-block", **fields)
    (sizes,) = of(FixtureRecord, found)
    assert (sizes.tokens, sizes.heads, sizes.score_width, sizes.value_width) == (3, 3, 2, 4)
    assert (sizes.vocabulary, sizes.model_width, sizes.hidden_width) == (4, 6, 7)
    printed = sum(record.values.size for record in of(ParameterGradient, found))
    assert printed == sizes.parameter_count
    assert of(Input, found)[0].token is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epsilon": -1.0}, OutOfRange),
        ({"position_base": 0.0}, FixtureError),
        ({"position_base": -2.0}, FixtureError),
        ({"attention_output_weight": np.zeros((5, 7))}, ShapeMismatch),
        ({"ids": (), "upstream": np.zeros((0, 5))}, NoClasses),
        ({"embeddings": np.full((9, 5), 1e308)}, CoreError),
    ],
)
def test_wrong_numbers_are_refused(fields: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        records("encoder-block", **fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ids": (9,) * 7}, r"ids\[0\]: expected a whole number from 0 to 8"),
        ({"ids": (1, 2)}, "ids: expected shape tokens=7, found 2"),
        ({"norm": "both"}, "norm: expected one of pre, post"),
        ({"mask": "padding"}, "mask: expected one of none, causal"),
        ({"final_norm": "true"}, "final_norm: expected one of yes, no"),
        ({"up_bias": np.zeros(3)}, "up_bias: expected shape hidden=4"),
        ({"vocabulary": ("a",)}, "expected shape"),
        ({"first_norm_gain": np.zeros(4)}, "first_norm_gain: expected shape model=5"),
        ({"ids": (0,) * 3000, "upstream": np.zeros((3000, 5))}, "a result of at most"),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        EncoderBlockFixture(**fields)


def test_the_shared_upstream_is_the_formula() -> None:
    upstream = _proverb.upstream(7, 5)
    assert upstream[0] == [-0.3, -0.1, 0.1, 0.3, -0.2]

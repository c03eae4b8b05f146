"""The three models: their sizes, their rules written out by hand, and their gradients."""

import math

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import backward
from llm_trace.cue_recall.episodes import episodes
from llm_trace.cue_recall.models import MODELS, Model, Widths
from llm_trace.cue_recall.training import assign, flat, flat_gradient, train_loss

SMALL = Widths(embedding=3, rnn=4, gru=3, transformer=4, heads=2, mlp=5, positions=8)


def small(name: str, seed: int = 5) -> Model:
    """A model whose every parameter is off its special values 0 and 1."""
    model = MODELS[name].initialize(SMALL, seed)
    values = flat(model)
    assign(model, values + 0.3 * np.sin(np.arange(values.size) + seed))
    return model


@pytest.mark.parametrize(("name", "count"), [("rnn", 1943), ("gru", 2023), ("transformer", 1915)])
def test_the_models_have_the_published_sizes(name: str, count: int) -> None:
    model = MODELS[name].initialize(Widths(), 6206)
    assert model.parameter_count == count == flat(model).size
    assert len({parameter.name for parameter in model.parameters}) == len(model.parameters)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_start_within_their_bounds_and_from_their_seed(name: str) -> None:
    values = flat(MODELS[name].initialize(Widths(), 1))
    assert (values == flat(MODELS[name].initialize(Widths(), 1))).all()
    assert (values != flat(MODELS[name].initialize(Widths(), 2))).any()
    weights = {
        parameter.name: parameter.tensor.value
        for parameter in MODELS[name].initialize(Widths(), 1).parameters
    }
    for key, value in weights.items():
        if "norm" in key:
            assert (value == (1.0 if key.endswith("gain") else 0.0)).all()
    bound = {"rnn": 32, "gru": 17, "transformer": 12}[name]
    assert 0.9 < abs(weights["head.weight"]).max() * math.sqrt(bound) <= 1.0
    assert weights["head.weight"].shape == (7, bound)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    model, data, step = small(name), episodes(3, 3, 7), 1e-5
    values = flat(model)
    backward(train_loss(model, data.inputs, data.targets))
    gradient = flat_gradient(model)
    for at in range(values.size):
        losses = []
        for moved in (values[at] + step, values[at] - step):
            elsewhere = values.copy()
            elsewhere[at] = moved
            assign(model, elsewhere)
            losses.append(float(train_loss(model, data.inputs, data.targets).value))
        assert gradient[at] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_no_position_sees_what_comes_later(name: str) -> None:
    model = small(name)
    tokens = episodes(2, 3, 1).inputs.copy()
    before = model(tokens).value
    tokens[:, 4] = (tokens[:, 4] + 1) % 4
    after = model(tokens).value
    assert before[:, :4].tobytes() == after[:, :4].tobytes()
    assert (before[:, 4:] != after[:, 4:]).any(axis=(0, 2)).all()


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_rules_written_out(name: str) -> None:
    model = small(name)
    tokens = episodes(3, 3, 2).inputs
    weights = {parameter.name: parameter.tensor.value for parameter in model.parameters}
    by_hand = {"rnn": rnn, "gru": gru, "transformer": transformer}[name]
    for row, logits in zip(tokens, model(tokens).value, strict=True):
        np.testing.assert_allclose(logits, by_hand(weights, row.tolist()), rtol=1e-12, atol=1e-13)


def affine(weights: dict[str, Array], name: str, x: Array) -> Array:
    result: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def rnn(weights: dict[str, Array], tokens: list[int]) -> Array:
    h, logits = np.zeros(SMALL.rnn), []
    for token in tokens:
        x = weights["embedding"][token]
        h = np.tanh(affine(weights, "cell.input", x) + affine(weights, "cell.state", h))
        logits.append(affine(weights, "head", h))
    return np.array(logits)


def gru(weights: dict[str, Array], tokens: list[int]) -> Array:
    h, logits = np.zeros(SMALL.gru), []
    for token in tokens:
        inputs = np.split(affine(weights, "cell.input", weights["embedding"][token]), 3)
        states = np.split(affine(weights, "cell.state", h), 3)
        r, z = sigmoid(inputs[0] + states[0]), sigmoid(inputs[1] + states[1])
        n = np.tanh(inputs[2] + r * states[2])
        h = (1.0 - z) * n + z * h
        logits.append(affine(weights, "head", h))
    return np.array(logits)


def transformer(weights: dict[str, Array], tokens: list[int]) -> Array:
    def norm(name: str, rows: Array) -> Array:
        deviation = np.sqrt(rows.var(axis=1, keepdims=True) + 1e-5)
        y = (rows - rows.mean(axis=1, keepdims=True)) / deviation
        return np.asarray(y * weights[f"{name}.gain"] + weights[f"{name}.shift"])

    x = weights["embedding"][tokens] + weights["positions"][: len(tokens)]
    query, key, value = np.split(
        affine(weights, "attention.qkv", norm("attention.norm", x)), 3, axis=1
    )
    mixed = []
    for columns in (slice(0, 2), slice(2, 4)):
        scores = query[:, columns] @ key[:, columns].T / math.sqrt(2)
        scores[np.triu_indices(len(tokens), 1)] = -np.inf
        shares = np.exp(scores)
        mixed.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, columns])
    x = x + affine(weights, "attention.output", np.concatenate(mixed, axis=1))
    hidden = np.maximum(affine(weights, "mlp.up", norm("mlp.norm", x)), 0.0)
    x = x + affine(weights, "mlp.down", hidden)
    return affine(weights, "head", norm("norm", x))

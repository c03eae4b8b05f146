"""Norms against closed forms, LAPACK, and numbers at the ends of the range."""

import numpy as np
import pytest

from llm_trace.core.numerics import norms
from llm_trace.core.numerics.norms import euclidean_norm, spectral_norm


def test_the_euclidean_norm_sums_in_order() -> None:
    values = 1.0 / np.arange(3.0, 40.0)
    total = 0.0
    for value in values.tolist():
        total += value * value
    assert euclidean_norm(values) == np.sqrt(total)
    assert euclidean_norm(values.reshape(1, -1)) == np.sqrt(total)


@pytest.mark.parametrize("scale", [1.0, 2.0**1000, 2.0**-1040])
def test_the_scale_changes_no_bit(scale: float) -> None:
    assert euclidean_norm(np.array([3.0, -4.0]) * scale) == 5.0 * scale


def test_the_ends_of_the_euclidean_norm() -> None:
    assert euclidean_norm(np.zeros(0)) == euclidean_norm(np.zeros(3)) == 0.0
    assert euclidean_norm(np.array([5e-324])) == 5e-324
    assert euclidean_norm(np.array([1.7e308, 1.7e308])) == np.inf
    assert euclidean_norm(np.array([np.inf, 1.0])) == np.inf


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.zeros((3, 2)), 0.0),
        (np.diag([1.0, -7.0, 3.0]), 7.0),
        (np.array([[0.0, 0.0], [3.0, 4.0]]), 5.0),
        (np.array([[1.0, 1.0], [0.0, 1.0]]), (1.0 + np.sqrt(5.0)) / 2.0),
        (np.array([[0.6, -0.8], [0.8, 0.6]]) * 3.0, 3.0),
        (np.full((4, 4), 2.0), 8.0),
        (np.array([[5e-324]]), 5e-324),
        (np.outer([1.0, 2.0, 2.0], [1e-300, 0.0, 2.0]), 6.0),
        (np.diag([1.0, 1e-200, 1e-300]), 1.0),
    ],
)
def test_closed_forms(matrix: np.ndarray, expected: float) -> None:
    assert spectral_norm(matrix) == pytest.approx(expected, rel=1e-15, abs=0.0)
    assert spectral_norm(matrix.T) == pytest.approx(expected, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 7), (7, 3), (8, 8), (21, 20), (64, 64)])
@pytest.mark.parametrize("scale", [1.0, 1e250, 1e-250])
def test_a_stack_agrees_with_lapack(shape: tuple[int, int], scale: float) -> None:
    stack = np.random.default_rng(1).normal(size=(2, 3, *shape)) * scale
    found = spectral_norm(stack)
    assert found.shape == (2, 3)
    expected = np.linalg.norm(stack, 2, axis=(-2, -1))
    assert found == pytest.approx(expected, rel=1e-13, abs=0.0)
    assert found[1, 2] == pytest.approx(float(spectral_norm(stack[1, 2])), rel=1e-14, abs=0.0)


def test_close_singular_values_do_not_slow_it_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where power iteration would take millions of steps."""
    orthogonal = np.linalg.qr(np.random.default_rng(2).normal(size=(12, 12)))[0]
    other = np.linalg.qr(np.random.default_rng(3).normal(size=(12, 12)))[0]
    values = 1.0 - 1e-9 * np.arange(12.0)
    monkeypatch.setattr(norms, "_SWEEPS", 10)
    found = spectral_norm(orthogonal @ np.diag(values) @ other)
    assert found == pytest.approx(1.0, rel=1e-13)


def test_an_ill_conditioned_matrix() -> None:
    hilbert = 1.0 / (np.arange(14.0)[:, None] + np.arange(14.0) + 1.0)
    assert spectral_norm(hilbert) == pytest.approx(np.linalg.norm(hilbert, 2), rel=1e-14)


def test_empty_matrices_stretch_nothing() -> None:
    assert spectral_norm(np.zeros((2, 0, 3))).tolist() == [0.0, 0.0]
    assert spectral_norm(np.zeros((0, 2, 3))).shape == (0,)


def test_too_few_sweeps_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norms, "_SWEEPS", 1)
    with pytest.raises(ArithmeticError, match="not orthogonal after 1 sweeps"):
        spectral_norm(np.random.default_rng(1).normal(size=(8, 8)))

import numpy as np
import pytest

from llm_trace import run


def test_offsets_are_those_of_an_array_in_memory() -> None:
    values = np.arange(30.0).reshape(2, 3, 5)
    traced = run("tensor-storage", values=values, slice=1, row=2, column=3, written=-1.5)
    assert traced["LOOKUP", 0].offset == np.ravel_multi_index((1, 2, 3), values.shape)
    assert traced["LOOKUP", 0].value == values[1, 2, 3]
    changed = values.copy()
    changed[0, 2, 1] = -1.5
    assert np.array_equal(traced["WRITTEN", 0].values, changed.ravel())


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 4), (2, 3), (4, 4)])
def test_views_are_those_of_numpy(start: int, end: int) -> None:
    values = np.arange(12.0).reshape(3, 4)
    traced = run("tensor-views", values=values, start=start, end=end)
    views = {"reshape": values.reshape(4, 3), "transpose": values.T, "slice": values[:, start:end]}
    for name, view in views.items():
        found = traced.find("VIEW", id=name)
        assert np.array_equal(found.values, view.ravel())
        assert found.contiguous == (view.flags.c_contiguous or view.size < 2)


def test_broadcasts_and_reductions_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    tokens, bias = rng.normal(size=(4, 3)), rng.normal(size=3)
    traced, summed = run("broadcasting", tokens=tokens, bias=bias), tokens + bias
    found = {row.operation: row.values for row in traced["REDUCTION"]}
    assert found["sum"] == pytest.approx(summed.sum(0))
    assert found["mean"].ravel() == pytest.approx(summed.mean(1))
    assert np.array_equal(found["max"], summed.max(1))


def test_products_are_those_of_numpy() -> None:
    rng = np.random.default_rng(4)
    shapes = {"left": (4, 3), "right": (3, 2), "stored": (2, 3), "batch_left": (5, 4, 3)}
    given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    given["batch_right"] = rng.normal(size=(5, 3, 2))
    traced = run("matmul", **given)
    assert traced["PRODUCT", 0].values == pytest.approx(given["left"] @ given["right"])
    assert traced["TRANSPOSED", 0].values == pytest.approx(given["left"] @ given["stored"].T)
    for row in traced["BATCH"]:
        expected = given["batch_left"][row.output] @ given["batch_right"][row.output]
        assert row.values == pytest.approx(expected)
    assert traced["TERM", -1].partial_sum == pytest.approx(traced["PRODUCT", 0].values[3, 0])

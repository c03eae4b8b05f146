"""Every operation and its VJP: central differences, closed forms, and bits of scalar loops."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core import autodiff as ops
from llm_trace.core.autodiff import Tensor, backward, constant, no_grad, parameter, trace_backward
from llm_trace.core.errors import ShapeMismatch
from llm_trace.core.gradcheck import check_gradient

from .programs import TAKES_A_LIST, Program, random_steps, replay, run_both

Array = NDArray[np.float64]
Shape = tuple[int, ...]
Draw = Callable[[Shape, np.random.Generator], Array]


def normal(shape: Shape, rng: np.random.Generator) -> Array:
    return rng.normal(size=shape)


def positive(shape: Shape, rng: np.random.Generator) -> Array:
    return np.exp(rng.uniform(-1.0, 1.0, size=shape))


def off_zero(shape: Shape, rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], size=shape) * rng.uniform(0.1, 2.0, size=shape)


class Case(NamedTuple):
    operation: str
    shapes: tuple[Shape, ...]
    arguments: dict[str, Any]
    draw: Draw = normal

    def program(self, operations: Any, *leaves: Any) -> Any:
        operands = [leaves] if self.operation in TAKES_A_LIST else leaves
        return getattr(operations, self.operation)(*operands, **self.arguments)

    def values(self) -> list[Array]:
        rng = np.random.default_rng(len(self.shapes))
        return [self.draw(shape, rng) for shape in self.shapes]


PAIRS: list[tuple[Shape, Shape]] = [
    ((), ()),
    ((3,), ()),
    ((), (2, 2)),
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((2, 3, 4), (3, 1)),
    ((1, 3, 1), (2, 2, 1, 2)),
    ((0, 3), (3,)),
    ((0, 3), (1, 1)),
]

PRODUCTS: list[tuple[Shape, Shape]] = [
    ((2, 3), (3, 2)),
    ((1, 4), (4, 1)),
    ((2, 2, 3), (3, 2)),
    ((2, 3), (2, 3, 1)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (3, 2)),
    ((0, 3), (3, 2)),
]

SHAPES: list[Shape] = [(), (4,), (2, 3), (2, 1, 3), (2, 2, 1, 2), (0,), (2, 0, 3)]

REDUCTIONS: list[tuple[Shape, int]] = [
    ((4,), 0),
    ((2, 3), 0),
    ((2, 3), 1),
    ((2, 3, 2), 1),
    ((2, 1, 2, 2), 2),
    ((70,), 0),
    ((0, 3), 1),
]

CLASSES: list[tuple[Shape, int]] = [
    ((4,), 0),
    ((1,), 0),
    ((3, 4), 1),
    ((3, 4), 0),
    ((2, 3, 2), 1),
    ((2, 1, 2, 3), 3),
]

ELEMENTWISE = ("exp", "sigmoid", "silu", "tanh")

SEEN = np.array([[True, False, True], [False, True, False]])


def turns(shape: Shape) -> dict[str, Array]:
    angles = np.random.default_rng(3).normal(size=(shape[-2], shape[-1] // 2))
    return {"cosines": np.cos(angles), "sines": np.sin(angles)}


CASES = [
    *(Case(name, pair, {}) for name in ("add", "sub", "mul") for pair in PAIRS),
    *(Case("div", pair, {}, off_zero) for pair in PAIRS),
    *(Case("neg", (shape,), {}) for shape in SHAPES),
    *(Case("sqrt", (shape,), {}, positive) for shape in SHAPES),
    *(
        Case("power", (shape,), {"exponent": exponent}, off_zero)
        for shape in SHAPES
        for exponent in (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
    ),
    *(Case("power", (shape,), {"exponent": 0.5}, positive) for shape in SHAPES),
    *(Case("matmul", pair, {}) for pair in PRODUCTS),
    *(Case(name, (shape,), {}) for name in ELEMENTWISE for shape in SHAPES),
    *(
        Case("gelu", (shape,), {"approximate": approximate})
        for shape in SHAPES
        for approximate in (False, True)
    ),
    *(
        Case("rotary_pairs", (shape,), {**turns(shape), "pairing": pairing})
        for shape in [(3, 2), (2, 3, 4), (1, 2, 2, 6), (0, 3, 4), (2, 0, 4), (2, 0)]
        for pairing in ("pairs", "halves")
    ),
    *(Case("relu", (shape,), {}, off_zero) for shape in SHAPES),
    *(Case("log", (shape,), {}, positive) for shape in SHAPES),
    *(
        Case("reshape", (shape,), {"shape": target})
        for shape, target in [
            ((), (1, 1)),
            ((6,), (2, 3)),
            ((2, 3), (3, 2)),
            ((2, 2, 3), (12,)),
            ((1,), ()),
            ((2, 0), (0, 7)),
        ]
    ),
    *(
        Case("transpose", (shape,), {"first_axis": first, "second_axis": second})
        for shape, first, second in [
            ((3,), 0, 0),
            ((2, 3), 0, 1),
            ((2, 3, 2), 2, 0),
            ((2, 3, 1, 2), 1, 3),
            ((0, 3), 0, 1),
        ]
    ),
    *(
        Case("broadcast_to", (shape,), {"shape": target})
        for shape, target in [
            ((), (2, 3)),
            ((3,), (3,)),
            ((3,), (2, 3)),
            ((2, 1), (2, 3)),
            ((1, 2, 1), (2, 3, 2, 2)),
            ((1, 3), (0, 3)),
        ]
    ),
    *(
        Case(name, (shape,), {"axis": axis, "keep": keep})
        for name in ("sum_axis", "mean_axis", "max_axis")
        for shape, axis in REDUCTIONS
        for keep in (False, True)
    ),
    Case("sum_axis", ((2, 0),), {"axis": 1}),
    *(
        Case("gather_rows", (shape,), {"ids": ids, "shape": into})
        for shape, ids, into in [
            ((3, 2), [2, 1, 2], None),
            ((3, 2), [0], ()),
            ((2, 3), [1, 1, 1, 1, 0, 1], (2, 3)),
            ((2, 2), [], (0, 4)),
            ((2, 0), [1, 1], None),
        ]
    ),
    *(
        Case("select", (shape,), {"axis": axis, "index": index})
        for shape, axis, index in [
            ((4,), 0, 3),
            ((2, 3), 0, 0),
            ((2, 3), 1, 2),
            ((2, 3, 2), 1, 1),
            ((0, 3), 1, 0),
        ]
    ),
    *(
        Case("slice_axis", (shape,), {"axis": axis, "start": start, "stop": stop})
        for shape, axis, start, stop in [
            ((4,), 0, 1, 3),
            ((2, 6), 1, 0, 2),
            ((2, 3, 2), 1, 2, 3),
            ((2, 3), 0, 0, 2),
            ((2, 3), 1, 3, 3),
        ]
    ),
    *(
        Case("concatenate", shapes, {"axis": axis})
        for shapes, axis in [
            (((2, 3),), 0),
            (((2,), (3,), (1,)), 0),
            (((2, 3), (2, 1)), 1),
            (((2, 1, 3), (2, 2, 3)), 1),
            (((0, 2), (3, 2)), 0),
        ]
    ),
    *(
        Case("stack", (shape,) * count, {"axis": axis})
        for shape, count, axis in [((), 3, 0), ((4,), 1, 1), ((2, 3), 3, 1), ((2, 3), 2, 2)]
    ),
    *(
        Case("softmax", (shape,), {"visible": visible})
        for shape, visible in [
            ((4,), None),
            ((1,), None),
            ((2, 3), None),
            ((2, 2, 3), None),
            ((0, 3), None),
            ((2, 3), SEEN),
            ((2, 2, 3), SEEN),
            ((2, 3), SEEN[0]),
            ((2, 2, 3), SEEN[:, None]),
            ((0, 3), SEEN[:0]),
        ]
    ),
    *(
        Case("layer_norm", (shape,), {"epsilon": epsilon})
        for shape, epsilon in [
            ((4,), 1e-5),
            ((1,), 1e-5),
            ((2, 3), 0.0),
            ((2, 2, 5), 0.5),
            ((0, 3), 1e-5),
        ]
    ),
    *(Case("log_softmax", (shape,), {"axis": axis}) for shape, axis in CLASSES),
    Case("log_softmax", ((0, 3),), {"axis": 1}),
    *(
        Case("causal_softmax", (shape,), {})
        for shape in [(1, 1), (4, 4), (2, 3, 3), (2, 1, 2, 2), (0, 3, 3)]
    ),
    *(
        Case(
            "indexed_mean_nll",
            (shape,),
            {
                "axis": axis,
                "targets": [
                    (7 * i + 1) % shape[axis] for i in range(math.prod(shape) // shape[axis])
                ],
            },
        )
        for shape, axis in CLASSES
    ),
]

each_case = pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.operation}-{case.shapes}-{case.arguments}" for case in CASES]
)

NOT_OPERATIONS = {
    *("BackwardTrace", "Edge", "Mask", "Tensor", "constant", "parameter", "no_grad"),
    *("backward", "topology", "trace_backward"),
}


def test_the_cases_cover_every_operation_exported() -> None:
    assert {case.operation for case in CASES} == {*ops.__all__} - NOT_OPERATIONS


def assert_agrees_with_differences(program: Program, values: list[Array]) -> None:
    leaves = [parameter(value) for value in values]
    output = program(ops, *leaves)
    upstream = np.random.default_rng(9).normal(size=output.shape)
    backward(output, upstream)
    for place, leaf in enumerate(leaves):

        def objective(moved: Array, place: int = place) -> float:
            operands = [*map(constant, values)]
            operands[place] = constant(moved)
            with no_grad():
                return math.fsum((program(ops, *operands).value * upstream).ravel().tolist())

        assert leaf.gradient is not None
        assert leaf.gradient.shape == leaf.shape
        if leaf.value.size:
            report = check_gradient(
                objective, leaf.value, leaf.gradient, step=1e-5, tolerance=2e-8, max_samples=9
            )
            assert report.passed, report.max_scaled_error


@each_case
def test_the_gradient_agrees_with_central_differences(case: Case) -> None:
    assert_agrees_with_differences(case.program, case.values())


@each_case
def test_values_and_adjoints_have_the_bits_of_scalar_loops(case: Case) -> None:
    for seed in range(3):
        run_both(case.program, case.values(), seed).assert_equal_bits()


@each_case
def test_operands_and_upstream_are_left_alone(case: Case) -> None:
    leaves = [parameter(value) for value in case.values()]
    output = case.program(ops, *leaves)
    before = [leaf.value.tobytes() for leaf in leaves], output.value.tobytes()
    upstream = np.ones(output.shape)
    backward(output, upstream)
    assert ([leaf.value.tobytes() for leaf in leaves], output.value.tobytes()) == before
    assert (upstream == 1.0).all()


# Closed forms -------------------------------------------------------------------------------------


def gradients(output: Tensor, seed: Array, *leaves: Tensor) -> list[Array]:
    trace = trace_backward(output, seed)
    return [trace.adjoint(leaf) for leaf in leaves]


def drawn(*shapes: Shape, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def assert_close(ours: Array, expected: Array | float) -> None:
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-13)


def test_a_sum_passes_the_upstream_to_both_sides() -> None:
    a, b, g = drawn((2, 3), (3,), (2, 3))
    x, y = parameter(a), parameter(b)
    dx, dy = gradients(ops.add(x, y), g, x, y)
    np.testing.assert_array_equal(dx, g)
    assert_close(dy, g.sum(0))


def test_a_product_passes_the_other_side() -> None:
    a, b, g = drawn((2, 3), (2, 1), (2, 3))
    x, y = parameter(a), parameter(b)
    dx, dy = gradients(ops.mul(x, y), g, x, y)
    np.testing.assert_array_equal(dx, g * b)
    assert_close(dy, (g * a).sum(1, keepdims=True))


def test_a_matmul_passes_products_with_the_other_side_transposed() -> None:
    a, b, g = drawn((5, 2, 3), (3, 4), (5, 2, 4))
    x, y = parameter(a), parameter(b)
    dx, dy = gradients(ops.matmul(x, y), g, x, y)
    assert_close(dx, np.einsum("bij,kj->bik", g, b))
    assert_close(dy, np.einsum("bik,bij->kj", a, g))


@pytest.mark.parametrize(
    ("operation", "derivative"),
    [
        (ops.exp, np.exp),
        (ops.log, lambda x: 1.0 / x),
        (ops.tanh, lambda x: 1.0 / np.cosh(x) ** 2),
        (ops.relu, lambda x: np.heaviside(x, 0.0)),
        (ops.sigmoid, lambda x: 0.25 / np.cosh(x / 2) ** 2),
        (ops.silu, lambda x: (1 + x / (1 + np.exp(x))) / (1 + np.exp(-x))),
    ],
)
def test_an_elementwise_gradient_is_the_derivative(
    operation: Callable[[Tensor], Tensor], derivative: Callable[[Array], Array]
) -> None:
    (g,) = drawn((50,))
    x = parameter(np.linspace(0.1, 4.0, 50) * (1.0 if operation is ops.log else g / abs(g)))
    (dx,) = gradients(operation(x), g, x)
    assert_close(dx, g * derivative(x.value))


def test_reductions_spread_the_upstream() -> None:
    a, g = drawn((2, 3), (2,))
    x = parameter(a)
    np.testing.assert_array_equal(
        gradients(ops.sum_axis(x, axis=1), g, x)[0], np.repeat(g[:, None], 3, 1)
    )
    np.testing.assert_array_equal(
        gradients(ops.mean_axis(x, axis=1), g, x)[0], np.repeat(g[:, None] / 3.0, 3, 1)
    )


def test_moves_are_undone() -> None:
    a, g = drawn((2, 3), (3, 2))
    x = parameter(a)
    turned = ops.transpose(x, first_axis=0, second_axis=1)
    np.testing.assert_array_equal(turned.value, a.T)
    np.testing.assert_array_equal(gradients(turned, g, x)[0], g.T)
    np.testing.assert_array_equal(gradients(ops.reshape(x, shape=(3, 2)), g, x)[0], g.reshape(2, 3))


def test_a_broadcast_is_summed_back() -> None:
    a, g = drawn((3, 1), (2, 3, 4))
    x = parameter(a)
    (dx,) = gradients(ops.broadcast_to(x, shape=(2, 3, 4)), g, x)
    assert_close(dx, g.sum((0, 2))[:, None])


def test_gathered_rows_scatter_back_and_repeats_add_up() -> None:
    a, g = drawn((4, 2), (3, 2))
    x = parameter(a)
    picked = ops.gather_rows(x, ids=[2, 0, 2])
    np.testing.assert_array_equal(picked.value, a[[2, 0, 2]])
    np.testing.assert_array_equal(
        gradients(picked, g, x)[0], np.array([g[1], [0.0, 0.0], g[0] + g[2], [0.0, 0.0]])
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_log_softmax_subtracts_the_probability_of_the_whole_upstream(axis: int) -> None:
    a, g = drawn((3, 4), (3, 4))
    x = parameter(a)
    y = ops.log_softmax(x, axis=axis)
    p = np.exp(a) / np.exp(a).sum(axis, keepdims=True)
    assert_close(y.value, np.log(p))
    (dx,) = gradients(y, g, x)
    assert_close(dx, g - p * g.sum(axis, keepdims=True))


@pytest.mark.parametrize(("axis", "targets"), [(1, [3, 0, 3]), (0, [2, 2, 0, 1])])
def test_mean_nll_is_probability_minus_one_hot_over_the_count(
    axis: int, targets: list[int]
) -> None:
    (a,) = drawn((3, 4))
    x = parameter(a)
    loss = ops.indexed_mean_nll(x, axis=axis, targets=targets)
    p = np.exp(a) / np.exp(a).sum(axis, keepdims=True)
    one_hot = np.moveaxis(np.eye(a.shape[axis])[targets], 1, axis)
    assert_close(loss.value, -np.log((p * one_hot).sum(axis)).mean())
    (dx,) = gradients(loss, np.array(3.0), x)
    assert_close(dx, 3.0 * (p - one_hot) / len(targets))


def test_groups_of_a_middle_class_axis_are_row_major() -> None:
    (a,) = drawn((2, 3, 2))
    x = parameter(a)
    targets = [0, 1, 2, 0]
    loss = ops.indexed_mean_nll(x, axis=1, targets=targets)
    log_p = a - np.log(np.exp(a).sum(1, keepdims=True))
    picked = [log_p[0, 0, 0], log_p[0, 1, 1], log_p[1, 2, 0], log_p[1, 0, 1]]
    assert_close(loss.value, -float(np.mean(picked)))


# Numbers that only one way of computing gives -----------------------------------------------------


def bits(values: Array) -> bytes:
    return np.asarray(values, dtype=np.float64).tobytes()


def test_silu_of_a_very_negative_number_is_negative_zero() -> None:
    x = constant([-1000.0, -0.0, 0.0, 1000.0])
    assert bits(ops.silu(x).value) == bits(np.array([-0.0, -0.0, 0.0, 1000.0]))


@pytest.mark.parametrize("value", [-0.0, 0.0])
def test_silu_at_both_zeros_has_slope_one_half(value: float) -> None:
    x = parameter(value)
    assert gradients(ops.silu(x), np.array(1.0), x) == [0.5]


def test_relu_of_zero_is_flat_and_positive() -> None:
    x = parameter([-0.0, 0.0, -1.0])
    y = ops.relu(x)
    assert bits(y.value) == bits(np.zeros(3))
    (edge,) = trace_backward(y, [-1.0, 1.0, -1.0]).edges
    assert bits(edge.contribution) == bits(np.zeros(3))


@pytest.mark.parametrize("keep", [False, True])
def test_reductions_of_negative_zeros_are_positive(keep: bool) -> None:
    x = constant(np.full((1, 2), -0.0))
    for reduce in (ops.sum_axis, ops.mean_axis):
        assert bits(reduce(x, axis=0, keep=keep).value) == bits(np.zeros(2))


def test_an_empty_sum_is_positive_zero() -> None:
    assert bits(ops.sum_axis(constant(np.zeros((2, 0))), axis=1).value) == bits(np.zeros(2))


def test_leaves_products_and_moves_keep_negative_zero() -> None:
    x = constant([-0.0])
    for y in (
        x,
        ops.mul(x, constant([1.0])),
        ops.reshape(x, shape=(1, 1)),
        ops.transpose(x, first_axis=0, second_axis=0),
        ops.broadcast_to(x, shape=(1,)),
        ops.gather_rows(ops.reshape(x, shape=(1, 1)), ids=[0]),
    ):
        assert math.copysign(1.0, y.value.item()) == -1.0


def test_probabilities_and_losses_are_never_negative_zero() -> None:
    x = parameter([[0.0], [-0.0]])
    y = ops.log_softmax(x, axis=1)
    assert bits(y.value) == bits(np.zeros((2, 1)))
    loss = ops.indexed_mean_nll(x, axis=1, targets=[0, 0])
    assert bits(loss.value) == bits(np.zeros(()))
    (edge,) = trace_backward(loss, -1.0).edges
    assert bits(edge.contribution) == bits(np.zeros((2, 1)))


def test_a_mean_divides_and_does_not_multiply_by_the_inverse() -> None:
    x = constant([0.0, 0.0, 5.0])
    assert ops.mean_axis(x, axis=0).value.item() == 5.0 / 3.0 != 5.0 * (1.0 / 3.0)
    y = parameter(np.zeros(3))
    assert gradients(ops.mean_axis(y, axis=0), np.array(5.0), y)[0].tolist() == [5.0 / 3.0] * 3


def test_a_small_tail_of_log_softmax_survives() -> None:
    y = ops.log_softmax(constant([0.0, -40.0]), axis=0)
    assert y.value[0] == -ops.exp(constant(-40.0)).value  # log(1 + tail) would be 0


def test_later_ties_of_the_maximum_count() -> None:
    y = ops.log_softmax(constant([2.0, 2.0, 2.0]), axis=0)
    assert_close(y.value, -math.log(3.0))


def test_logits_a_thousand_apart_give_finite_results() -> None:
    y = ops.log_softmax(constant([1000.0, 0.0]), axis=0)
    assert y.value.tolist() == [0.0, -1000.0]


LARGEST = 1.7976931348623157e308


def test_a_loss_that_overflows_as_a_sum_is_scaled_first() -> None:
    x = parameter([[LARGEST / 2, -LARGEST / 2]] * 4)
    loss = ops.indexed_mean_nll(x, axis=1, targets=[1, 1, 1, 1])
    assert loss.value.item() == LARGEST


def test_losses_near_the_largest_number_have_the_bits_of_scalar_loops() -> None:
    def program(o: Any, x: Any) -> Any:
        return o.indexed_mean_nll(x, axis=1, targets=[2, 0, 1])

    rng = np.random.default_rng(5)
    for scale in np.linspace(0.05, 0.7, 40):  # from a finite total to gaps that overflow
        run_both(program, [rng.uniform(-scale, scale, size=(3, 3)) * LARGEST]).assert_equal_bits()


def test_one_gap_that_overflows_is_scaled_first() -> None:
    logits = [[LARGEST, -LARGEST], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    loss = ops.indexed_mean_nll(constant(logits), axis=1, targets=[1, 0, 0, 0])
    assert loss.value == LARGEST / 2


def test_the_weight_gradient_adds_batch_after_batch_and_the_bias_gradient_runs_flat() -> None:
    u = 2.0**-53
    x, w, b = constant(np.ones((2, 2, 1))), parameter([[1.0]]), parameter([1.0])
    trace = trace_backward(ops.add(ops.matmul(x, w), b), [[[1.0], [u]], [[u], [u]]])
    assert trace.adjoint(w).item() == 1.0 + 2.0**-52  # (1 + u) + (u + u)
    assert trace.adjoint(b).item() == 1.0  # ((1 + u) + u) + u


# Whole graphs, bit for bit ------------------------------------------------------------------------


def test_a_batched_layer_has_the_bits_of_scalar_loops() -> None:
    def program(o: Any, x: Any, w: Any, b: Any, scale: Any) -> Any:
        hidden = o.silu(o.add(o.matmul(x, w), b))
        weighted = o.mul(o.log_softmax(hidden, axis=2), scale)
        mean = o.mean_axis(weighted, axis=2)
        return o.sum_axis(o.mean_axis(mean, axis=1), axis=0)

    for seed in range(10):
        run_both(program, drawn((2, 3, 4), (4, 5), (5,), (2, 1, 5), seed=seed)).assert_equal_bits()


def test_an_embedding_with_a_loss_has_the_bits_of_scalar_loops() -> None:
    def program(o: Any, table: Any, w: Any) -> Any:
        rows = o.gather_rows(table, ids=[1, 1, 3, 1, 0], shape=(5,))
        logits = o.matmul(o.tanh(rows), w)
        return o.indexed_mean_nll(logits, axis=1, targets=[0, 2, 1, 1, 0])

    for seed in range(10):
        run_both(program, drawn((4, 3), (3, 3), seed=seed)).assert_equal_bits()


def test_exponentials_and_logarithms_have_the_bits_of_scalar_loops() -> None:
    def program(o: Any, x: Any, y: Any) -> Any:
        e = o.exp(o.tanh(x))
        return o.indexed_mean_nll(o.mul(o.log(o.add(e, e)), y), axis=0, targets=[1, 0, 2, 1])

    for seed in range(10):
        run_both(program, drawn((3, 4), (3, 1), seed=seed)).assert_equal_bits()


def test_shared_parents_and_fan_out_have_the_bits_of_scalar_loops() -> None:
    def program(o: Any, x: Any, w: Any) -> Any:
        square = o.mul(x, x)
        branches = [o.matmul(square, w), o.matmul(x, w), o.mul(o.silu(square), x)]
        return o.add(o.add(o.mul(branches[0], branches[1]), branches[2]), square)

    for seed in range(10):
        run_both(program, drawn((3, 3), (3, 3), seed=seed)).assert_equal_bits()


def test_shared_parents_and_fan_out_agree_with_central_differences() -> None:
    def program(o: Any, x: Any) -> Any:
        square = o.mul(x, x)
        return o.add(o.mul(square, x), o.add(o.silu(square), o.add(x, x)))

    assert_agrees_with_differences(program, drawn((2, 3)))


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 12))
def test_random_graphs_have_the_bits_of_scalar_loops(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = (int(extent) for extent in rng.integers(1, 4, size=2))
    shapes: list[Shape] = [(n, n), (m, n), (n,), (2, m, n)]
    shapes = shapes[: int(rng.integers(1, 5))]
    values = [rng.normal(size=shape) for shape in shapes]
    run_both(replay(random_steps(shapes, size, rng)), values, seed).assert_equal_bits()


def test_of_equal_largest_elements_the_first_has_the_gradient() -> None:
    x = parameter([[2.0, 3.0, 3.0], [-0.0, 0.0, -1.0]])
    y = ops.max_axis(x, axis=1)
    assert y.value.tobytes() == np.array([3.0, -0.0]).tobytes()
    (dx,) = gradients(y, np.array([5.0, 7.0]), x)
    assert dx.tolist() == [[0.0, 5.0, 0.0], [7.0, 0.0, 0.0]]


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_of_what_is_far_from_zero(approximate: bool) -> None:
    x = parameter([-1e300, -40.0, -0.0, 40.0, 1e300])
    y = ops.gelu(x, approximate=approximate)
    assert y.value.tolist() == [0.0, 0.0, 0.0, 40.0, 1e300]
    (dx,) = gradients(y, np.ones(5), x)
    assert dx.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_gelu_is_x_times_the_normal_distribution() -> None:
    x = np.linspace(-5.0, 5.0, 101)
    expected = [v * 0.5 * math.erfc(-v / math.sqrt(2.0)) for v in x.tolist()]
    exact = ops.gelu(constant(x)).value
    np.testing.assert_allclose(exact, expected, rtol=1e-12, atol=1e-15)
    near = ops.gelu(constant(x), approximate=True).value
    assert 1e-5 < np.abs(near - exact).max() < 1e-3


@pytest.mark.parametrize(
    ("shape", "cosines", "sines"),
    [
        ((4,), (2,), (2,)),
        ((2, 3), (2, 1), (2, 1)),
        ((2, 4), (2, 3), (2, 3)),
        ((2, 4), (2, 2), (2, 1)),
    ],
)
def test_rotations_of_another_shape_are_refused(shape: Shape, cosines: Shape, sines: Shape) -> None:
    with pytest.raises(ShapeMismatch, match=r"^rotary pairs "):
        ops.rotary_pairs(constant(np.ones(shape)), cosines=np.ones(cosines), sines=np.ones(sines))

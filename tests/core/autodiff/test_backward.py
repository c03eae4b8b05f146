"""The tape: topology, the reverse sweep and its record, accumulation, release and refusals."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    add,
    backward,
    broadcast_to,
    constant,
    exp,
    gather_rows,
    indexed_mean_nll,
    log_softmax,
    matmul,
    mean_axis,
    mul,
    no_grad,
    parameter,
    reshape,
    silu,
    sum_axis,
    topology,
    trace_backward,
    transpose,
)
from llm_trace.core.autodiff.errors import (
    GraphReleased,
    NonFiniteAccumulatedGradient,
    NonFiniteForward,
    NonFinitePassAdjoint,
    NonFiniteSeed,
    NonFiniteVjp,
    ReleasedOperand,
    SeedShapeMismatch,
    StaleOperandValue,
    UntrackedOutput,
)
from llm_trace.core.errors import CoreError

Array = NDArray[np.float64]

LARGEST = 1.7976931348623157e308
NAN = float("nan")


def gradient(tensor: Tensor) -> Array:
    assert tensor.gradient is not None
    return tensor.gradient


def negative(values: Array) -> list[bool]:
    found: list[bool] = np.signbit(values).ravel().tolist()
    return found


# Topology ---------------------------------------------------------------------------------------


def test_operands_come_first_depth_first_in_operand_order() -> None:
    a, b, c = parameter(1.0), parameter(2.0), constant(3.0)
    ab = mul(a, b)
    cb = mul(c, b)
    output = add(cb, ab)
    assert topology(output) == [c, b, cb, a, ab, output]


def test_every_node_stands_once_however_often_it_is_used() -> None:
    x = parameter(2.0)
    square = mul(x, x)
    output = add(square, mul(square, x))
    assert topology(output) == [x, square, output.parents[1], output]


def test_nodes_are_told_apart_by_identity_and_not_by_value() -> None:
    x, y = parameter(1.0), parameter(1.0)
    assert topology(add(x, y))[:2] == [x, y]
    assert x != y


def test_a_diamond_visits_the_second_operand_after_the_whole_first_branch() -> None:
    x = parameter(1.0)
    first = exp(x)
    second = silu(first)
    third = silu(x)
    output = add(second, third)
    assert topology(output) == [x, first, second, third, output]


def test_the_topology_of_a_leaf_is_the_leaf() -> None:
    x = parameter(1.0)
    assert topology(x) == [x]


# Trace ------------------------------------------------------------------------------------------


def test_edges_run_from_the_last_child_down_and_in_operand_order() -> None:
    x, w, b = parameter([[1.0, 2.0]]), parameter([[3.0], [4.0]]), parameter([5.0])
    trace = trace_backward(add(matmul(x, w), b), [[2.0]])
    assert [(e.child, e.operand, e.parent) for e in trace.edges] == [
        (4, 0, 2),
        (4, 1, 3),
        (2, 0, 0),
        (2, 1, 1),
    ]
    assert [e.upstream.tolist() for e in trace.edges] == [[[2.0]]] * 4
    assert [e.contribution.tolist() for e in trace.edges] == [
        [[2.0]],
        [2.0],
        [[6.0, 8.0]],
        [[2.0], [4.0]],
    ]


def test_edges_of_a_square_are_two_and_join() -> None:
    x = parameter(3.0)
    trace = trace_backward(mul(x, x))
    assert [(e.operand, e.contribution.item()) for e in trace.edges] == [(0, 3.0), (1, 3.0)]
    joined = [(e.before, e.after) for e in trace.edges]
    assert np.array(joined).tolist() == [[0.0, 3.0], [3.0, 6.0]]


def test_branches_contribute_in_reverse_topological_order() -> None:
    """((0 + third) + second) + first rounds to another number than first + second + third."""
    x = parameter(1.0)
    terms = [mul(x, constant(c)) for c in (1.0, 2.0**-53, 2.0**-53)]
    trace = trace_backward(add(add(terms[0], terms[1]), terms[2]))
    contributions = [e.contribution.item() for e in trace.edges if trace.nodes[e.parent] is x]
    assert contributions == [2.0**-53, 2.0**-53, 1.0]
    assert gradient(x).item() == 1.0 + 2.0**-52


def test_a_first_contribution_is_added_to_positive_zero() -> None:
    x = parameter([1.0])
    y = reshape(x, shape=(1, 1))
    trace = trace_backward(y, [[-0.0]])
    (edge,) = trace.edges
    assert edge.before is not None
    assert edge.after is not None
    assert negative(edge.upstream) == [True]
    assert negative(edge.contribution) == [True]
    assert negative(edge.before) == negative(edge.after) == [False]


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (lambda x: reshape(x, shape=(2, 1)), (2, 1)),
        (lambda x: transpose(x, first_axis=0, second_axis=1), (2, 1)),
        (lambda x: sum_axis(x, axis=0), (2,)),
        (lambda x: mean_axis(x, axis=0, keep=True), (1, 2)),
        (exp, (1, 2)),
        (silu, (1, 2)),
    ],
)
def test_a_negative_zero_seed_survives_in_the_adjoint_and_the_contribution(
    operation: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    x = parameter([[1.0, 2.0]])
    output = operation(x)
    trace = trace_backward(output, np.full(shape, -0.0))
    assert negative(trace.adjoint(output)) == [True, True]
    assert negative(trace.edges[0].contribution) == [True, True]
    assert negative(gradient(x)) == [False, False]


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: add(x, constant([[1.0, 1.0]])),
        lambda x: mul(x, constant([[1.0, 1.0]])),
        lambda x: broadcast_to(x, shape=(1, 2)),
        lambda x: matmul(x, constant(np.eye(2))),
        lambda x: gather_rows(x, ids=[0]),
    ],
)
def test_a_contribution_that_is_summed_up_is_never_negative_zero(
    operation: Callable[[Tensor], Tensor],
) -> None:
    x = parameter([[1.0, 2.0]])
    trace = trace_backward(operation(x), [[-0.0, -0.0]])
    assert negative(trace.edges[0].contribution) == [False, False]


def test_an_untracked_operand_has_a_contribution_and_no_adjoint() -> None:
    x, c = parameter([2.0]), constant([5.0])
    trace = trace_backward(mul(c, x), [3.0])
    to_constant, to_parameter = trace.edges
    assert to_constant.contribution.tolist() == [6.0]
    assert to_constant.before is None
    assert to_constant.after is None
    assert to_parameter.after is not None
    assert trace.adjoints[trace.nodes.index(c)] is None
    with pytest.raises(KeyError):
        trace.adjoint(c)


def test_below_an_untracked_result_there_are_nodes_and_no_edges() -> None:
    x, c = parameter(2.0), constant(3.0)
    trace = trace_backward(mul(x, exp(c)))
    assert [node.operation for node in trace.nodes] == ["parameter", "constant", "exp", "mul"]
    assert [(e.child, e.parent) for e in trace.edges] == [(3, 0), (3, 2)]


def test_the_trace_of_a_pass_knows_every_adjoint() -> None:
    x = parameter([1.0, 2.0])
    square = mul(x, x)
    output = sum_axis(square, axis=0)
    trace = trace_backward(output)
    assert trace.nodes == (x, square, output)
    assert [a is not None and a.tolist() for a in trace.adjoints] == [[2.0, 4.0], [1.0, 1.0], 1.0]
    with pytest.raises(KeyError):
        trace.adjoint(parameter(1.0))


def test_a_trace_does_not_change_when_more_passes_follow() -> None:
    x = parameter([3.0])
    y = mul(x, x)
    trace = trace_backward(y, [1.0])
    kept = gradient(x)
    backward(y, [10.0])
    assert trace.adjoint(x).tolist() == kept.tolist() == [6.0]
    assert gradient(x).tolist() == [66.0]


def test_traced_and_untraced_passes_store_the_same_bits() -> None:
    def graph() -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(4)
        w = parameter(rng.normal(size=(3, 4)))
        logits = matmul(constant(rng.normal(size=(5, 3))), w)
        return w, indexed_mean_nll(silu(logits), axis=1, targets=[0, 1, 2, 3, 0])

    (first, loss), (second, same_loss) = graph(), graph()
    backward(loss)
    trace_backward(same_loss)
    assert gradient(first).tobytes() == gradient(second).tobytes()


# Accumulation -----------------------------------------------------------------------------------


def test_passes_over_a_retained_graph_add_up_from_fresh_adjoints() -> None:
    x = parameter([3.0])
    y = mul(x, x)
    for passes in (1, 2, 3):
        trace = trace_backward(y, [1.0])
        assert trace.adjoint(x).tolist() == [6.0]
        assert gradient(x).tolist() == [6.0 * passes]


def test_zeroing_a_gradient_leaves_the_graph_alone() -> None:
    x = parameter([3.0])
    y = mul(x, x)
    backward(y, [-1.0])
    x.zero_gradient()
    assert gradient(x).tobytes() == np.zeros(1).tobytes()
    backward(y, [1.0])
    assert gradient(x).tolist() == [6.0]


def test_a_parameter_can_be_the_output() -> None:
    x = parameter([1.0, 2.0])
    trace = trace_backward(x, [-0.0, 5.0], retain=False)
    assert negative(trace.adjoint(x)) == [True, False]
    assert negative(gradient(x)) == [False, False]
    backward(x, [1.0, 1.0])
    assert gradient(x).tolist() == [1.0, 6.0]


def test_a_scalar_is_seeded_with_one() -> None:
    x = parameter(3.0)
    trace = trace_backward(mul(x, x))
    assert trace.adjoints[-1] == 1.0
    assert gradient(x) == 6.0


def test_two_graphs_on_one_parameter_add_to_one_gradient() -> None:
    x = parameter(3.0)
    backward(exp(mul(x, constant(0.0))))
    backward(mul(x, constant(2.0)))
    assert gradient(x) == 2.0


def test_only_parameters_have_gradients() -> None:
    x = parameter(1.0)
    y = exp(x)
    backward(y)
    assert y.gradient is None
    assert constant(1.0).gradient is None
    assert x.detach().gradient is None


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3)])
def test_a_fresh_gradient_is_positive_zero_of_the_same_shape(shape: tuple[int, ...]) -> None:
    x = parameter(np.full(shape, -0.0))
    assert gradient(x).shape == shape
    assert gradient(x).tobytes() == np.zeros(shape).tobytes()


# Values, detach, no_grad ------------------------------------------------------------------------


def test_values_and_gradients_cannot_be_written_to() -> None:
    given = np.array([1.0, 2.0])
    x = parameter(given)
    y = mul(x, x)
    trace = trace_backward(y, given)
    given[0] = 99.0
    assert x.value.tolist() == [1.0, 2.0]
    for array in (x.value, y.value, gradient(x), *(e.contribution for e in trace.edges)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


def test_a_seed_is_copied() -> None:
    seed = np.array([1.0])
    x = parameter([1.0])
    trace = trace_backward(x, seed)
    seed[0] = 5.0
    assert trace.adjoint(x).tolist() == [1.0]
    assert seed.flags.writeable


def test_a_result_is_tracked_if_an_operand_is() -> None:
    x, c = parameter(1.0), constant(1.0)
    assert add(c, x).tracked
    assert not add(c, c).tracked
    assert add(c, c).parents == (c, c)


def test_a_detached_copy_stops_the_gradient() -> None:
    p = parameter([2.0, 3.0])
    loss = sum_axis(add(mul(p, p), mul(p.detach(), constant([10.0, 10.0]))), axis=0)
    backward(loss)
    assert loss.value == 63.0
    assert gradient(p).tolist() == [4.0, 6.0]
    frozen = p.detach()
    assert (frozen.operation, frozen.tracked, frozen.parents) == ("detached", False, ())


def test_without_recording_results_have_no_parents() -> None:
    x = parameter(2.0)
    with no_grad():
        y = mul(x, x)
    assert y.value == 4.0
    assert (y.tracked, y.parents) == (False, ())
    assert mul(x, x).tracked
    with pytest.raises(UntrackedOutput):
        backward(y)


def test_recording_is_off_until_the_outermost_scope_ends() -> None:
    x = parameter(2.0)
    with no_grad():
        with no_grad():
            assert not exp(x).tracked
        assert not exp(x).tracked
    assert exp(x).tracked


def test_recording_resumes_after_an_exception() -> None:
    x = parameter(2.0)
    with pytest.raises(NonFiniteForward), no_grad():
        exp(constant(1000.0))
    assert exp(x).tracked


def test_an_unrecorded_result_is_a_constant_to_later_operations() -> None:
    x = parameter(2.0)
    with no_grad():
        y = exp(x)
    backward(mul(x, y))
    assert gradient(x) == y.value


# Release ----------------------------------------------------------------------------------------


def test_a_released_graph_keeps_values_and_gradients_and_loses_its_parents() -> None:
    x = parameter(3.0)
    y = mul(x, x)
    z = exp(constant(0.0))
    loss = mul(y, z)
    backward(loss, retain=False)
    assert loss.value == 9.0
    assert gradient(x) == 6.0
    assert loss.parents == y.parents == z.parents == ()
    assert [node.released for node in (loss, y, z, x)] == [True, True, True, False]


def test_a_released_graph_refuses_every_further_use() -> None:
    x = parameter(3.0)
    y = mul(x, x)
    loss = exp(y)
    side = silu(y)
    backward(loss, retain=False)
    for output, operation in ((loss, "exp"), (y, "mul"), (side, "mul")):
        with pytest.raises(GraphReleased) as refused:
            backward(output)
        assert refused.value == GraphReleased(operation=operation)
    with pytest.raises(ReleasedOperand) as built:
        add(x, side)
    assert built.value == ReleasedOperand(operation="add", operand=1)
    with pytest.raises(ReleasedOperand), no_grad():
        exp(side)
    assert gradient(x) == pytest.approx(6.0 * np.exp(9.0))


def test_an_unrelated_graph_on_the_same_parameter_survives_a_release() -> None:
    x = parameter(3.0)
    kept = mul(x, x)
    backward(exp(x), retain=False)
    x.zero_gradient()
    backward(add(kept, x))
    assert gradient(x) == 7.0


def test_a_release_is_noticed_after_a_graph_was_found_whole() -> None:
    x = parameter(1.0)
    shared = exp(x)
    deep = shared
    for _ in range(5):
        deep = silu(deep)
    backward(silu(shared), retain=False)
    with pytest.raises(ReleasedOperand):
        silu(deep)
    backward(exp(x), retain=False)
    with pytest.raises(ReleasedOperand):
        silu(deep)


def test_a_release_is_found_below_every_operand() -> None:
    x = parameter(1.0)
    shared = exp(x)
    deep = add(constant(1.0), mul(constant(2.0), shared))
    backward(shared, retain=False)
    with pytest.raises(ReleasedOperand) as refused:
        mul(x, deep)
    assert refused.value == ReleasedOperand(operation="mul", operand=1)


def test_the_first_released_ancestor_on_the_walk_is_named() -> None:
    x = parameter(1.0)
    first, second = exp(x), silu(x)
    output = add(mul(first, first), second)
    backward(second, retain=False)
    with pytest.raises(GraphReleased) as refused:
        topology(output)
    assert refused.value.facts == {"operation": "silu"}
    backward(first, retain=False)
    with pytest.raises(GraphReleased) as refused:
        topology(output)
    assert refused.value.facts == {"operation": "exp"}


def test_leaves_are_never_released() -> None:
    x, c = parameter(1.0), constant(1.0)
    d = x.detach()
    backward(add(add(x, c), d), retain=False)
    backward(mul(mul(x, c), d))
    assert gradient(x) == 2.0


def test_a_released_value_can_be_detached() -> None:
    x = parameter(1.0)
    y = exp(x)
    backward(y, retain=False)
    assert exp(y.detach()).value == exp(constant(y.value)).value


# Staleness --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2.0, 3.0])
def test_a_graph_built_before_an_assignment_is_stale(value: float) -> None:
    x = parameter(2.0)
    y = mul(constant(1.0), exp(x))
    x.assign(value)
    with pytest.raises(StaleOperandValue) as refused:
        backward(y)
    assert refused.value == StaleOperandValue(operand=0, child=2, parent=1, recorded=0, current=1)
    assert gradient(x) == 0.0
    backward(exp(x))
    assert gradient(x) == exp(x).value


def test_the_highest_child_and_its_first_stale_operand_are_named() -> None:
    x, y = parameter(2.0), parameter(3.0)
    output = mul(exp(x), mul(y, x))
    x.assign(1.0)
    y.assign(1.0)
    y.assign(1.0)
    with pytest.raises(StaleOperandValue) as refused:
        backward(output)
    assert refused.value == StaleOperandValue(operand=0, child=3, parent=2, recorded=0, current=2)


def test_a_refused_assignment_changes_nothing() -> None:
    x = parameter([1.0, 2.0])
    y = exp(x)
    with pytest.raises(ValueError, match="assign"):
        x.assign([1.0])
    with pytest.raises(CoreError):
        x.assign([1.0, NAN])
    assert x.value.tolist() == [1.0, 2.0]
    backward(y, [1.0, 1.0])


def test_an_assigned_parameter_is_not_stale_as_an_output() -> None:
    x = parameter(1.0)
    x.assign(2.0)
    backward(x)
    assert gradient(x) == 1.0


# Refusals change nothing ------------------------------------------------------------------------


def overflowing_vjp() -> tuple[Tensor, Tensor, Array]:
    x = parameter([1.0, 1e-200])
    return x, mul(x, constant([1.0, 1e200])), np.array([1.0, 1e200])


def overflowing_adjoint() -> tuple[Tensor, Tensor, Array]:
    x = parameter([0.0, 0.0])
    return x, add(x, x), np.array([1.0, LARGEST])


def overflowing_gradient() -> tuple[Tensor, Tensor, Array]:
    x = parameter([0.0, 0.0])
    backward(x, [0.0, LARGEST])
    return x, reshape(x, shape=(2,)), np.array([1.0, LARGEST])


def not_finite_seed() -> tuple[Tensor, Tensor, Array]:
    x = parameter([0.0, 0.0])
    return x, exp(x), np.array([1.0, NAN])


def wrong_seed_shape() -> tuple[Tensor, Tensor, Array]:
    x = parameter([0.0, 0.0])
    return x, exp(x), np.array([1.0])


@pytest.mark.parametrize("retain", [True, False])
@pytest.mark.parametrize("run", [backward, trace_backward])
@pytest.mark.parametrize(
    ("build", "error"),
    [
        (overflowing_vjp, NonFiniteVjp(operand=0, child=2, parent=0, index=1, value=np.inf)),
        (
            overflowing_adjoint,
            NonFinitePassAdjoint(node=0, previous=LARGEST, contribution=LARGEST, index=1),
        ),
        (
            overflowing_gradient,
            NonFiniteAccumulatedGradient(node=0, stored=LARGEST, adjoint=LARGEST, index=1),
        ),
        (wrong_seed_shape, SeedShapeMismatch(expected=(2,), actual=(1,))),
        (not_finite_seed, None),
    ],
)
def test_a_refused_pass_leaves_gradients_and_graph_as_they_were(
    build: Callable[[], tuple[Tensor, Tensor, Array]],
    error: CoreError | None,
    run: Callable[..., object],
    retain: bool,
) -> None:
    x, output, seed = build()
    backward(output, [0.25, -0.5])
    before, value = gradient(x).tobytes(), output.value.tobytes()
    with pytest.raises(type(error) if error else NonFiniteSeed) as refused:
        run(output, seed, retain=retain)
    assert error is None or refused.value == error
    assert (gradient(x).tobytes(), output.value.tobytes()) == (before, value)
    nodes = topology(output)
    assert not any(node.released for node in nodes)
    backward(output, [-0.25, 0.5])
    assert gradient(x).tobytes() != before


def test_no_parameter_is_updated_when_a_later_one_overflows() -> None:
    first, second = parameter(1.0), parameter(0.5)
    backward(second, LARGEST)
    output = add(first, mul(second, constant(LARGEST)))
    with pytest.raises(NonFiniteAccumulatedGradient) as refused:
        backward(output)
    assert refused.value.facts["node"] == 1
    assert gradient(first) == 0.0
    assert gradient(second) == LARGEST


def test_stored_gradients_are_checked_in_topology_order() -> None:
    first, second = parameter(1.0), parameter(2.0)
    backward(first, LARGEST)
    backward(second, LARGEST)
    with pytest.raises(NonFiniteAccumulatedGradient) as refused:
        backward(add(second, first), LARGEST)
    assert refused.value.facts["node"] == 0


def test_a_vjp_that_overflows_towards_an_untracked_operand_is_refused_too() -> None:
    x, c = parameter(10.0), constant(1e-5)
    y = mul(x, c)
    with pytest.raises(NonFiniteVjp) as refused:
        backward(y, 1e308)
    assert refused.value == NonFiniteVjp(operand=1, child=2, parent=1, index=0, value=np.inf)
    assert gradient(x) == 0.0


def test_each_contribution_is_added_before_the_next_is_looked_at() -> None:
    x, c = parameter(100.0), constant(1.0)
    with pytest.raises(NonFinitePassAdjoint) as added:
        backward(add(mul(x, c), x), 1e308)  # 1e308 + 1e308 to x, then an infinity to c
    assert added.value == NonFinitePassAdjoint(node=0, previous=1e308, contribution=1e308, index=0)
    with pytest.raises(NonFiniteVjp) as contributed:
        backward(add(mul(c, x), x), 1e308)
    assert contributed.value == NonFiniteVjp(operand=0, child=2, parent=0, index=0, value=np.inf)


# Which refusal comes first ----------------------------------------------------------------------


def test_a_released_output_is_refused_before_anything_else() -> None:
    c = constant([1.0])
    x = parameter([1.0])
    untracked = exp(c)
    backward(mul(x, untracked), [1.0], retain=False)
    with pytest.raises(GraphReleased):
        backward(untracked)


def test_an_untracked_output_is_refused_before_its_seed() -> None:
    with pytest.raises(UntrackedOutput):
        backward(exp(constant([1.0, 2.0])))
    with pytest.raises(UntrackedOutput):
        backward(constant([1.0, 2.0]), [NAN])


def released_below(x: Tensor) -> Tensor:
    y = exp(x)
    output = silu(y)
    backward(y, np.ones(y.shape), retain=False)
    return output


def test_a_missing_seed_is_refused_before_released_ancestors_are_found() -> None:
    output = released_below(parameter([1.0, 2.0]))
    with pytest.raises(SeedShapeMismatch) as refused:
        backward(output)
    assert refused.value == SeedShapeMismatch(expected=(2,), actual=())


def test_released_ancestors_are_refused_before_a_seed_of_the_wrong_shape() -> None:
    output = released_below(parameter([1.0, 2.0]))
    for seed in ([1.0], [1.0, NAN], 1.0):
        with pytest.raises(GraphReleased):
            backward(output, seed)


def test_a_seed_is_refused_for_its_shape_before_its_values() -> None:
    y = exp(parameter([1.0, 2.0]))
    with pytest.raises(SeedShapeMismatch):
        backward(y, [NAN])
    with pytest.raises(NonFiniteSeed) as refused:
        backward(y, [1.0, -np.inf])
    assert refused.value == NonFiniteSeed(index=1, value=-np.inf)


def test_a_seed_is_refused_before_stale_values_are() -> None:
    x = parameter([1.0])
    y = exp(x)
    x.assign([2.0])
    with pytest.raises(NonFiniteSeed):
        backward(y, [NAN])


def test_stale_values_are_refused_before_anything_is_computed() -> None:
    x, c = parameter([1.0]), constant([1e10])
    y = mul(x, c)
    x.assign([2.0])
    with pytest.raises(StaleOperandValue):
        backward(y, [1e300])


def test_a_pass_adjoint_is_refused_before_a_stored_gradient() -> None:
    x, y = parameter([1.0]), parameter([1.0])
    backward(y, [LARGEST])
    with pytest.raises(NonFinitePassAdjoint):
        backward(add(add(x, x), y), [LARGEST])


def test_released_ancestors_are_refused_before_stale_values() -> None:
    x = parameter([1.0])
    y = exp(x)
    output = add(mul(x, x), silu(y))
    backward(y, [1.0], retain=False)
    x.assign([2.0])
    with pytest.raises(GraphReleased):
        backward(output, [1.0])


# Depth ------------------------------------------------------------------------------------------

DEPTH = 20_000


def test_a_chain_of_twenty_thousand_operations_is_built_swept_and_released() -> None:
    x, c = parameter(1.0), constant(1.0)
    y = x
    for _ in range(DEPTH):
        y = mul(y, c)
    assert len(topology(y)) == DEPTH + 2
    backward(y, retain=False)
    assert gradient(x) == 1.0
    with pytest.raises(ReleasedOperand):
        mul(y, c)


def test_a_deep_chain_is_searched_for_a_release_and_forgotten_without_recursion() -> None:
    x = parameter(0.0)
    base = exp(x)
    y = base
    for _ in range(DEPTH):
        y = reshape(y, shape=())
    backward(silu(x), retain=False)
    assert log_softmax(reshape(y, shape=(1,)), axis=0).value == 0.0
    backward(base, retain=False)
    with pytest.raises(ReleasedOperand):
        reshape(y, shape=(1,))
    del y


def test_a_ladder_of_shared_nodes_is_walked_once() -> None:
    x = parameter(1.0)
    y = x
    for _ in range(200):
        y = mul(add(y, y), constant(0.5))  # 2**200 paths
    backward(y)
    assert gradient(x) == 1.0


def test_a_record_knows_operands_after_the_release() -> None:
    x, y = parameter([1.0, 2.0]), constant([3.0, 4.0])
    product = mul(x, y)
    trace = trace_backward(sum_axis(product, axis=0), retain=False)
    assert product.parents == ()
    assert [*map(trace.operands, range(4))] == [(), (), (x, y), (product,)]

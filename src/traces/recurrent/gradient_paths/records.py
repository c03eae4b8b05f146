"""The records of gradient paths: every product is the one of the shorter path times a factor."""

from typing import Annotated

from ....report.records import Record, field, key
from ....report.values import Flag, Int, Real, Reals, ScientificReal, Shape, Word

HiddenRow = Annotated[Reals, "hidden_width"]
SENSITIVITY = {
    "length == 1": "1",
    "": "TrajectoryRecord(length=length - 1).scientific * abs(transition)",
}
BOUND = {
    "transitions == 0": "norm(last_gradient)",
    "": (
        "Path(source=source + 1).bound_scientific * Stretch(matrix=f'J_{source + 1}').spectral_norm"
    ),
}


class FixtureRecord(Record, kind="FIXTURE"):
    """The three experiments."""

    name: Word = field("what these numbers are called")
    factors: Reals = field("derivatives of a transition, held fixed", "fixture.factors")
    trajectories: Int = field("input sequences of the scalar RNN")
    steps: Int = field("T, steps of each; also the most transitions of a fixed factor")
    input_weight: Real = field(
        "w_x of the scalar RNN; its initial state is 0, its activation tanh", "fixture.input_weight"
    )
    recurrent_weight: Real = field("w_h of the scalar RNN", "fixture.recurrent_weight")
    vector_steps: Int = field("steps of the vector RNN")
    input_width: Int = field("coordinates of its observations")
    hidden_width: Int = field("coordinates of its states")
    last_gradient: HiddenRow = field(
        "dL/dh_q, given at its last state h_q", "fixture.last_gradient"
    )


class FixedFactor(Record):
    """A path whose transitions all have the same derivative."""

    factor: Real = key("the derivative of every transition")
    transitions: Int = key("k, how many are multiplied")
    sensitivity: Real = field("the absolute value of their product", "abs(factor) ** transitions")
    scientific: ScientificReal = field("the same with an exponent", "abs(factor) ** transitions")


class TrajectoryRecord(Record, kind="TRAJECTORY"):
    """The scalar RNN when its sequence is `length` steps long."""

    trajectory: Int = key("0-based")
    length: Int = key("T, steps from the first")
    input: Real = field("x_{T-1}, the newest observation", "fixture.inputs[trajectory, length - 1]")
    state: Real = field(
        "h_{T-1}",
        {
            "length == 1": "tanh(input_weight * input)",
            "": (
                "tanh(input_weight * input"
                " + recurrent_weight * TrajectoryRecord(length=length - 1).state)"
            ),
        },
    )
    slope: Real = field("the local derivative of tanh", "1 - state ** 2")
    transition: Real = field(
        "dh_{T-1}/dh_{T-2}; for T = 1 the one from h_-1", "slope * recurrent_weight"
    )
    sensitivity: Real = field(
        "|dh_{T-1}/dh_0|, the product of the transitions but the first", SENSITIVITY
    )
    scientific: ScientificReal = field("the same with an exponent", SENSITIVITY)


class Backpropagation(Record):
    """The longest path of one trajectory again, by a backward pass through all its steps."""

    trajectory: Int = key("0-based")
    transitions: Int = field("from h_0 to the last state")
    product: ScientificReal = field(
        "their product, the first transition first", "prod(TrajectoryRecord.transition[1:])"
    )
    adjoint: ScientificReal = field(
        "dh_{T-1}/dh_0 on the tape, the last transition first",
        "prod(TrajectoryRecord.transition[:0:-1])",
    )
    difference: ScientificReal = field(
        "|adjoint - product| / |product|, the rounding of two orders; 0 if both are 0"
    )


class Jacobian(Record):
    """One row of the derivative of a state of the vector RNN by the state before it."""

    step: Int = key("t, 0-based")
    row: Int = key("i, the coordinate of h_t")
    values: HiddenRow = field(
        "dh_{t,i}/dh_{t-1,j} for every j: row i of J_t = diag(1 - h_t^2) W_h",
        {  # of the later ones the states are not printed
            "step == 0": (
                "(1 - tanh(fixture.vector_input_weight[row] @ fixture.vector_inputs[0]"
                " + fixture.vector_bias[row]) ** 2) * fixture.vector_recurrent_weight[row]"
            ),
        },
    )


class Stretch(Record):
    """The largest factor by which a matrix lengthens a vector."""

    matrix: Word = key("J and the step, or W_h")
    spectral_norm: Real = field(
        "its largest singular value, by one-sided Jacobi rotations",
        {
            "matrix == 'W_h'": "spectral_norm(fixture.vector_recurrent_weight)",
            "": "spectral_norm(Jacobian(step=int(matrix[2:])).values)",
        },
    )


class Path(Record):
    """The way of a gradient from the last state h_q back to h_s."""

    source: Int = key("s")
    transitions: Int = field("q - s")
    product_shape: Shape = field("hidden-width x hidden-width")
    product: Annotated[Reals, "product_shape"] = field(
        "P = J_q J_{q-1} ... J_{s+1}, row-major; the identity for s = q",
        {
            "transitions == 0": "identity(hidden_width)",
            "": "Path(source=source + 1).product @ Jacobian(step=source + 1).values",
        },
    )
    from_product: HiddenRow = field("what P makes of last-gradient", "last_gradient @ product")
    gradient: HiddenRow = field(
        "dL/dh_s on the tape",
        {
            "transitions == 0": "last_gradient",
            "": "Path(source=source + 1).gradient @ Jacobian(step=source + 1).values",
        },
    )
    gradient_norm: Real = field("its Euclidean length", "norm(gradient)")
    gradient_norm_scientific: ScientificReal = field("the same with an exponent", "norm(gradient)")
    product_norm: Real = field("the spectral norm of P", "spectral_norm(product)")
    bound: Real = field(
        "length of last-gradient, times the spectral norms of J_{s+1} to J_q", BOUND
    )
    bound_scientific: ScientificReal = field("the same with an exponent", BOUND)
    within: Flag = field("whether gradient-norm is at most bound, up to 1e-12 of it for rounding")


class Order(Record):
    """Matrix products do not commute."""

    product: Annotated[Reals, "hidden_width hidden_width"] = field(
        "J_q ... J_1, row-major", "Path(source=0).product"
    )
    reverse: Annotated[Reals, "hidden_width hidden_width"] = field(
        "J_1 ... J_q, the same factors in the wrong order",
        "matrix_product(reshape(Jacobian.values, -1, hidden_width, hidden_width)[1:])",
    )
    equal: Flag = field("whether they have equal values")

"""The records of gradient paths: every product is the one of the shorter path times a factor."""

from ...report.records import Record, field
from ...report.values import Flag, Int, Real, Reals, ScientificReal, Shape, Word

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
    factors: Reals = field("derivatives of a transition, held fixed", formula="fixture.factors")
    trajectories: Int = field("input sequences of the scalar RNN")
    steps: Int = field("T, steps of each; also the most transitions of a fixed factor")
    input_weight: Real = field(
        "w_x of the scalar RNN; its initial state is 0, its activation tanh",
        formula="fixture.input_weight",
    )
    recurrent_weight: Real = field("w_h of the scalar RNN", formula="fixture.recurrent_weight")
    vector_steps: Int = field("steps of the vector RNN")
    input_width: Int = field("coordinates of its observations")
    hidden_width: Int = field("coordinates of its states")
    last_gradient: Reals = field(
        "dL/dh_q, given at its last state h_q",
        shape="hidden_width",
        formula="fixture.last_gradient",
    )


class FixedFactor(Record):
    """A path whose transitions all have the same derivative."""

    factor: Real = field("the derivative of every transition", aligns=True)
    transitions: Int = field("k, how many are multiplied", aligns=True)
    sensitivity: Real = field(
        "the absolute value of their product", formula="abs(factor) ** transitions"
    )
    scientific: ScientificReal = field(
        "the same with an exponent", formula="abs(factor) ** transitions"
    )


class TrajectoryRecord(Record, kind="TRAJECTORY"):
    """The scalar RNN when its sequence is `length` steps long."""

    trajectory: Int = field("0-based", aligns=True)
    length: Int = field("T, steps from the first", aligns=True)
    input: Real = field(
        "x_{T-1}, the newest observation", formula="fixture.inputs[trajectory, length - 1]"
    )
    state: Real = field(
        "h_{T-1}",
        formula={
            "length == 1": "tanh(input_weight * input)",
            "": (
                "tanh(input_weight * input"
                " + recurrent_weight * TrajectoryRecord(length=length - 1).state)"
            ),
        },
    )
    slope: Real = field("the local derivative of tanh", formula="1 - state ** 2")
    transition: Real = field(
        "dh_{T-1}/dh_{T-2}; for T = 1 the one from h_-1", formula="slope * recurrent_weight"
    )
    sensitivity: Real = field(
        "|dh_{T-1}/dh_0|, the product of the transitions but the first", formula=SENSITIVITY
    )
    scientific: ScientificReal = field("the same with an exponent", formula=SENSITIVITY)


class Backpropagation(Record):
    """The longest path of one trajectory again, by a backward pass through all its steps."""

    trajectory: Int = field("0-based", aligns=True)
    transitions: Int = field("from h_0 to the last state")
    product: ScientificReal = field(
        "their product, the first transition first", formula="prod(TrajectoryRecord.transition[1:])"
    )
    adjoint: ScientificReal = field(
        "dh_{T-1}/dh_0 on the tape, the last transition first",
        formula="prod(TrajectoryRecord.transition[:0:-1])",
    )
    difference: ScientificReal = field(
        "|adjoint - product| / |product|, the rounding of two orders; 0 if both are 0"
    )


class Jacobian(Record):
    """One row of the derivative of a state of the vector RNN by the state before it."""

    step: Int = field("t, 0-based", aligns=True)
    row: Int = field("i, the coordinate of h_t", aligns=True)
    values: Reals = field(
        "dh_{t,i}/dh_{t-1,j} for every j: row i of J_t = diag(1 - h_t^2) W_h",
        shape="hidden_width",
        formula={  # of the later ones the states are not printed
            "step == 0": (
                "(1 - tanh(fixture.vector_input_weight[row] @ fixture.vector_inputs[0]"
                " + fixture.vector_bias[row]) ** 2) * fixture.vector_recurrent_weight[row]"
            ),
        },
    )


class Stretch(Record):
    """The largest factor by which a matrix lengthens a vector."""

    matrix: Word = field("J and the step, or W_h", aligns=True)
    spectral_norm: Real = field(
        "its largest singular value, by one-sided Jacobi rotations",
        formula={
            "matrix == 'W_h'": "spectral_norm(fixture.vector_recurrent_weight)",
            "": "spectral_norm(Jacobian(step=int(matrix[2:])).values)",
        },
    )


class Path(Record):
    """The way of a gradient from the last state h_q back to h_s."""

    source: Int = field("s", aligns=True)
    transitions: Int = field("q - s")
    product_shape: Shape = field("hidden-width x hidden-width")
    product: Reals = field(
        "P = J_q J_{q-1} ... J_{s+1}, row-major; the identity for s = q",
        shape="product_shape",
        formula={
            "transitions == 0": "identity(hidden_width)",
            "": "Path(source=source + 1).product @ Jacobian(step=source + 1).values",
        },
    )
    from_product: Reals = field(
        "what P makes of last-gradient", shape="hidden_width", formula="last_gradient @ product"
    )
    gradient: Reals = field(
        "dL/dh_s on the tape",
        shape="hidden_width",
        formula={
            "transitions == 0": "last_gradient",
            "": "Path(source=source + 1).gradient @ Jacobian(step=source + 1).values",
        },
    )
    gradient_norm: Real = field("its Euclidean length", formula="norm(gradient)")
    gradient_norm_scientific: ScientificReal = field(
        "the same with an exponent", formula="norm(gradient)"
    )
    product_norm: Real = field("the spectral norm of P", formula="spectral_norm(product)")
    bound: Real = field(
        "length of last-gradient, times the spectral norms of J_{s+1} to J_q", formula=BOUND
    )
    bound_scientific: ScientificReal = field("the same with an exponent", formula=BOUND)
    within: Flag = field("whether gradient-norm is at most bound, up to 1e-12 of it for rounding")


class Order(Record):
    """Matrix products do not commute."""

    product: Reals = field(
        "J_q ... J_1, row-major",
        shape="hidden_width hidden_width",
        formula="Path(source=0).product",
    )
    reverse: Reals = field(
        "J_1 ... J_q, the same factors in the wrong order",
        shape="hidden_width hidden_width",
        formula=("matrix_product(reshape(Jacobian.values, -1, hidden_width, hidden_width)[1:])"),
    )
    equal: Flag = field("whether they have equal values")

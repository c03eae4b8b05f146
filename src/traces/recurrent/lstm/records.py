"""The records of the LSTM trace."""

from ....core.nn.lstm import GATES
from ....report.records import Record, field
from ....report.values import Int, Real, Reals, Shape, Word, Words
from .. import _gated as gated

SHOWN = "Gates.output_gate[coordinate] * (1 - Memory.cell_tanh[coordinate] ** 2)"
"""How a coordinate of the state follows its cell."""


def preactivation(gate: str) -> dict[str, str]:
    """The formula of a gate before its activation, with both biases where the fixture has them."""
    return {
        f"biases == 2 and fixture.{gate}_recurrent_bias is not None": (
            gated.preactivation(gate, "bias", "recurrent_bias")
        ),
        "": gated.preactivation(gate, "bias", None),
    }


def first(array: str) -> dict[str, str]:
    """What stands before the first step."""
    return {
        "initial == 'given'": f"reshape(fixture.{array}, sequences, hidden_width)[sequence]",
        "": "0",
    }


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    sequences: Int = field("independent sequences, row-major over the leading axes")
    time_steps: Int = field("steps of each")
    input_width: Int = field("features of an input")
    hidden_width: Int = field("coordinates of a cell and of a state, H")
    output_width: Int = field("features of a prediction")
    gates: Words = field("in the order of PyTorch's stacked rows, H rows each", shape="4")
    biases: Int = field("bias vectors of each gate: 1 merged, or 2, beside W_x and beside W_h")
    initial: Word = field("whether the first cell and state are the fixture's (given) or zero")
    parameter_count: Int = field(
        "scalars in cell and head",
        formula=(
            "4 * hidden_width * (input_width + hidden_width + biases)"
            " + output_width * (hidden_width + 1)"
        ),
    )
    loss: Real = field(
        "half the squared error, added over outputs and sequences", formula="sum(Prediction.loss)"
    )


class Gates(Record):
    """Gates and candidate of one step; all values are H wide but the input."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    input: Reals = field(
        "x_t",
        shape="input_width",
        formula="reshape(fixture.input, sequences, time_steps, input_width)[sequence, time]",
    )
    previous_state: Reals = field(
        "h_{t-1}",
        shape="hidden_width",
        formula={"time > 0": "Memory(time=time - 1).state", **first("initial_state")},
    )
    input_pre: Reals = field(
        "the input gate before its sigmoid",
        shape="hidden_width",
        formula=preactivation("input"),
    )
    input_gate: Reals = field("i", shape="hidden_width", formula="sigmoid(input_pre)")
    forget_pre: Reals = field(
        "the forget gate before its sigmoid",
        shape="hidden_width",
        formula=preactivation("forget"),
    )
    forget_gate: Reals = field("f", shape="hidden_width", formula="sigmoid(forget_pre)")
    candidate_pre: Reals = field(
        "the candidate before its tanh",
        shape="hidden_width",
        formula=preactivation("candidate"),
    )
    candidate: Reals = field("g", shape="hidden_width", formula="tanh(candidate_pre)")
    output_pre: Reals = field(
        "the output gate before its sigmoid",
        shape="hidden_width",
        formula=preactivation("output"),
    )
    output_gate: Reals = field("o", shape="hidden_width", formula="sigmoid(output_pre)")


class Memory(Record):
    """Cell and state of the same step."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    previous_cell: Reals = field(
        "c_{t-1}",
        shape="hidden_width",
        formula={"time > 0": "Memory(time=time - 1).cell", **first("initial_cell")},
    )
    kept: Reals = field(
        "what stays of c_{t-1}", shape="hidden_width", formula="Gates.forget_gate * previous_cell"
    )
    written: Reals = field(
        "what comes of g", shape="hidden_width", formula="Gates.input_gate * Gates.candidate"
    )
    cell: Reals = field("c_t", shape="hidden_width", formula="kept + written")
    cell_tanh: Reals = field(
        "what could be shown of it", shape="hidden_width", formula="tanh(cell)"
    )
    state: Reals = field("h_t", shape="hidden_width", formula="Gates.output_gate * cell_tanh")


class Prediction(Record):
    """What the head makes of a sequence's last state."""

    sequence: Int = field("0-based", aligns=True)
    state: Reals = field(
        "h of the last step", shape="hidden_width", formula="Memory(time=time_steps - 1).state"
    )
    prediction: Reals = field(
        "what the head reads in it", shape="output_width", formula=gated.PREDICTION
    )
    target: Reals = field("y", shape="output_width", formula=gated.TARGET)
    error: Reals = field("how far it is off", shape="output_width", formula="prediction - target")
    loss: Real = field("half the sum of the squared errors", formula="sum(error ** 2) / 2")


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    state_gradient: Reals = field(
        "dL/dh_t, all later steps included",
        shape="hidden_width",
        formula={
            "time == time_steps - 1": "Prediction.error @ fixture.head_weight",
            "": gated.through_gates(GATES, "recurrent_weight", "(time=time + 1)"),
        },
        gradient_of="Memory.state",
    )
    output_gate_gradient: Reals = field(
        "dL/do",
        shape="hidden_width",
        formula="state_gradient * Memory.cell_tanh",
        gradient_of="Gates.output_gate",
    )
    output_pre_gradient: Reals = field(
        "dL/d output-pre",
        shape="hidden_width",
        formula="output_gate_gradient * Gates.output_gate * (1 - Gates.output_gate)",
        gradient_of="Gates.output_pre",
    )
    cell_gradient: Reals = field(
        "dL/dc_t, through the state and through the next cell",
        shape="hidden_width",
        formula={
            "time == time_steps - 1": (
                "state_gradient * Gates.output_gate * (1 - Memory.cell_tanh ** 2)"
            ),
            "": (
                "state_gradient * Gates.output_gate * (1 - Memory.cell_tanh ** 2)"
                " + StepGradient(time=time + 1).cell_gradient * Gates(time=time + 1).forget_gate"
            ),
        },
        gradient_of="Memory.cell",
    )
    forget_gate_gradient: Reals = field(
        "dL/df",
        shape="hidden_width",
        formula="cell_gradient * Memory.previous_cell",
        gradient_of="Gates.forget_gate",
    )
    forget_pre_gradient: Reals = field(
        "dL/d forget-pre",
        shape="hidden_width",
        formula="forget_gate_gradient * Gates.forget_gate * (1 - Gates.forget_gate)",
        gradient_of="Gates.forget_pre",
    )
    input_gate_gradient: Reals = field(
        "dL/di",
        shape="hidden_width",
        formula="cell_gradient * Gates.candidate",
        gradient_of="Gates.input_gate",
    )
    input_pre_gradient: Reals = field(
        "dL/d input-pre",
        shape="hidden_width",
        formula="input_gate_gradient * Gates.input_gate * (1 - Gates.input_gate)",
        gradient_of="Gates.input_pre",
    )
    candidate_gradient: Reals = field(
        "dL/dg",
        shape="hidden_width",
        formula="cell_gradient * Gates.input_gate",
        gradient_of="Gates.candidate",
    )
    candidate_pre_gradient: Reals = field(
        "dL/d candidate-pre",
        shape="hidden_width",
        formula="candidate_gradient * (1 - Gates.candidate ** 2)",
        gradient_of="Gates.candidate_pre",
    )
    input_gradient: Reals = field(
        "dL/dx_t",
        shape="input_width",
        formula=gated.through_gates(GATES, "input_weight"),
        gradient_of="Gates.input",
    )


class InitialGradient(Record):
    """What arrives at the pair before the first step."""

    sequence: Int = field("0-based", aligns=True)
    cell: Reals = field(
        "c before the first step", shape="hidden_width", formula="Memory(time=0).previous_cell"
    )
    state: Reals = field(
        "h before the first step", shape="hidden_width", formula="Gates(time=0).previous_state"
    )
    cell_gradient: Reals = field(
        "dL/dc before the first step",
        shape="hidden_width",
        formula="StepGradient(time=0).cell_gradient * Gates(time=0).forget_gate",
        gradient_of="Memory(time=0).previous_cell",
    )
    state_gradient: Reals = field(
        "dL/dh before the first step",
        shape="hidden_width",
        formula=gated.through_gates(GATES, "recurrent_weight", "(time=0)"),
        gradient_of="Gates(time=0).previous_state",
    )


class ParameterGradient(Record):
    """The gradient of one gate's rows of a parameter, added up over steps and sequences."""

    name: Word = field("prefix, gate and parameter; or prefix, head and parameter", aligns=True)
    shape: Shape = field("weights outputs x inputs, biases outputs")
    values: Reals = field(
        "dL/d parameter, row-major",
        shape="shape",
        formula=gated.gradient_formulas(GATES, ("bias", "recurrent_bias")),
        gradient_of=gated.gradient_targets(GATES, ("bias",))
        | {
            f"name.endswith('.{gate}.recurrent_bias') and {bias} is not None": bias
            for gate in GATES
            for bias in (f"fixture.{gate}_recurrent_bias",)
        },
    )


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d (c_t, h_t) / d (c_{t-1}, h_{t-1}), from a backward pass with that seed."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    of: Word = field("the row's half of the pair: cell (c_t) or state (h_t)", aligns=True)
    coordinate: Int = field("of that half", aligns=True)
    carry: Reals = field(
        "by c_{t-1}, gates and candidate held: of diag(f), or diag(o tanh'(c) f)",
        shape="hidden_width",
        formula={
            "of == 'cell'": "one_hot(coordinate, hidden_width) * Gates.forget_gate",
            "": f"{SHOWN} * JacobianRow(of='cell').carry",
        },
    )
    by_cell: Reals = field(
        "by c_{t-1} through the whole step",
        shape="hidden_width",
        formula={
            "of == 'cell'": "one_hot(coordinate, hidden_width) * Gates.forget_gate",
            "": f"{SHOWN} * JacobianRow(of='cell').by_cell",
        },
    )
    cell_difference: Reals = field(
        "0, as no gate reads the cell", shape="hidden_width", formula="by_cell - carry"
    )
    by_state: Reals = field(
        "by h_{t-1}: all of it through gates and candidate",
        shape="hidden_width",
        formula={
            "of == 'cell'": (
                "Memory.previous_cell[coordinate] * Gates.forget_gate[coordinate]"
                " * (1 - Gates.forget_gate[coordinate])"
                " * fixture.forget_recurrent_weight[coordinate]"
                " + Gates.candidate[coordinate] * Gates.input_gate[coordinate]"
                " * (1 - Gates.input_gate[coordinate])"
                " * fixture.input_recurrent_weight[coordinate]"
                " + Gates.input_gate[coordinate] * (1 - Gates.candidate[coordinate] ** 2)"
                " * fixture.candidate_recurrent_weight[coordinate]"
            ),
            "": (
                f"{SHOWN} * JacobianRow(of='cell').by_state"
                " + Memory.cell_tanh[coordinate] * Gates.output_gate[coordinate]"
                " * (1 - Gates.output_gate[coordinate])"
                " * fixture.output_recurrent_weight[coordinate]"
            ),
        },
    )


class CarryPath(Record):
    """One row of d c_last / d c_initial, beside what the forget gates alone carry so far."""

    sequence: Int = field("0-based", aligns=True)
    coordinate: Int = field("of the last cell", aligns=True)
    full: Reals = field(
        "the row through all steps, states included",
        shape="hidden_width",
        formula=(
            "matrix_product(reshape(concat("
            "JacobianRow(coordinate=every).by_cell, JacobianRow(coordinate=every).by_state),"
            " time_steps, 2 * hidden_width, 2 * hidden_width)[::-1])[coordinate, :hidden_width]"
        ),
    )
    carried: Real = field(
        "this coordinate's forget gates of all steps, multiplied",
        formula="prod(Gates.forget_gate[:, coordinate])",
    )
    difference: Real = field(
        "the row's own coordinate minus carried", formula="full[coordinate] - carried"
    )

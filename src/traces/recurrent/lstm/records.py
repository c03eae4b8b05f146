"""The records of the LSTM trace."""

from typing import Annotated

from ....core.nn.lstm import GATES
from ....report.records import Record, field, key
from ....report.values import Int, Real, Reals, Shape, Word, Words
from .. import _gated as gated
from .. import _output as output

THROUGH_STATE = "state_gradient * Gates.output_gate * (1 - Memory.cell_tanh ** 2)"
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


HiddenRow = Annotated[Reals, "hidden_width"]
OutputRow = Annotated[Reals, "output_width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    sequences: Int = field("independent sequences, row-major over the leading axes")
    time_steps: Int = field("steps of each")
    input_width: Int = field("features of an input")
    hidden_width: Int = field("coordinates of a cell and of a state, H")
    output_width: Int = field("features of a prediction")
    gates: Annotated[Words, "4"] = field("in the order of PyTorch's stacked rows, H rows each")
    biases: Int = field("bias vectors of each gate: none, 1 merged, or 2, beside W_x and W_h")
    initial: Word = field("whether the first cell and state are the fixture's (given) or zero")
    head: Word | None = field("absent, or without-bias; left out for one with a bias", omitted=True)
    scored: Word | None = field("every if all steps have a target or an upstream", omitted=True)
    seed: Word | None = field("upstream if that is given in place of a target", omitted=True)
    parameter_count: Int = field("scalars in cell and head", gated.parameter_count(GATES))
    loss: Real = field(
        "half the squared error, or upstream times output, added over everything",
        "sum(Prediction.loss)",
    )


class Gates(Record):
    """Gates and candidate of one step; all values are H wide but the input."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    input: Annotated[Reals, "input_width"] = field("x_t", gated.INPUT)
    previous_state: HiddenRow = field(
        "h_{t-1}", gated.previous("Memory(time=time - 1).state", "initial_state")
    )
    input_pre: HiddenRow = field("the input gate before its sigmoid", preactivation("input"))
    input_gate: HiddenRow = field("i", "sigmoid(input_pre)")
    forget_pre: HiddenRow = field("the forget gate before its sigmoid", preactivation("forget"))
    forget_gate: HiddenRow = field("f", "sigmoid(forget_pre)")
    candidate_pre: HiddenRow = field("the candidate before its tanh", preactivation("candidate"))
    candidate: HiddenRow = field("g", "tanh(candidate_pre)")
    output_pre: HiddenRow = field("the output gate before its sigmoid", preactivation("output"))
    output_gate: HiddenRow = field("o", "sigmoid(output_pre)")


class Memory(Record):
    """Cell and state of the same step."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    previous_cell: HiddenRow = field(
        "c_{t-1}", gated.previous("Memory(time=time - 1).cell", "initial_cell")
    )
    kept: HiddenRow = field("what stays of c_{t-1}", "Gates.forget_gate * previous_cell")
    written: HiddenRow = field("what comes of g", "Gates.input_gate * Gates.candidate")
    cell: HiddenRow = field("c_t", "kept + written")
    cell_tanh: HiddenRow = field("what could be shown of it", "tanh(cell)")
    state: HiddenRow = field("h_t", "Gates.output_gate * cell_tanh")


class Prediction(Record):
    """What is read from a sequence's last state, or from every one."""

    sequence: Int = key("0-based")
    time: Int | None = key("0-based, if every step is read", omitted=True)
    state: HiddenRow = field("h of that step", output.state_of("Memory"))
    prediction: OutputRow = field("what the head reads in it", output.PREDICTION)
    target: OutputRow | None = field("y", output.row_of("target"), omitted=True)
    error: OutputRow | None = field("how far it is off", "prediction - target", omitted=True)
    upstream: OutputRow | None = field("dL/d prediction", output.row_of("upstream"), omitted=True)
    loss: Real = field("half the sum of the squared errors", output.LOSS)


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    state_gradient: HiddenRow = field(
        "dL/dh_t, all later steps included",
        output.state_gradient(
            {"": gated.through_gates(GATES, "recurrent_weight", "(time=time + 1)")}
        ),
        gradient_of="Memory.state",
    )
    output_gate_gradient: HiddenRow = field(
        "dL/do", "state_gradient * Memory.cell_tanh", gradient_of="Gates.output_gate"
    )
    output_pre_gradient: HiddenRow = field(
        "dL/d output-pre",
        "output_gate_gradient * Gates.output_gate * (1 - Gates.output_gate)",
        gradient_of="Gates.output_pre",
    )
    cell_gradient: HiddenRow = field(
        "dL/dc_t, through the state and through the next cell",
        {
            "time == time_steps - 1": THROUGH_STATE,
            "": (
                f"{THROUGH_STATE} + StepGradient(time=time + 1).cell_gradient"
                " * Gates(time=time + 1).forget_gate"
            ),
        },
        gradient_of="Memory.cell",
    )
    forget_gate_gradient: HiddenRow = field(
        "dL/df", "cell_gradient * Memory.previous_cell", gradient_of="Gates.forget_gate"
    )
    forget_pre_gradient: HiddenRow = field(
        "dL/d forget-pre",
        "forget_gate_gradient * Gates.forget_gate * (1 - Gates.forget_gate)",
        gradient_of="Gates.forget_pre",
    )
    input_gate_gradient: HiddenRow = field(
        "dL/di", "cell_gradient * Gates.candidate", gradient_of="Gates.input_gate"
    )
    input_pre_gradient: HiddenRow = field(
        "dL/d input-pre",
        "input_gate_gradient * Gates.input_gate * (1 - Gates.input_gate)",
        gradient_of="Gates.input_pre",
    )
    candidate_gradient: HiddenRow = field(
        "dL/dg", "cell_gradient * Gates.input_gate", gradient_of="Gates.candidate"
    )
    candidate_pre_gradient: HiddenRow = field(
        "dL/d candidate-pre",
        "candidate_gradient * (1 - Gates.candidate ** 2)",
        gradient_of="Gates.candidate_pre",
    )
    input_gradient: Annotated[Reals, "input_width"] = field(
        "dL/dx_t", gated.through_gates(GATES, "input_weight"), gradient_of="Gates.input"
    )


class InitialGradient(Record):
    """What arrives at the pair before the first step."""

    sequence: Int = key("0-based")
    cell: HiddenRow = field("c before the first step", "Memory(time=0).previous_cell")
    state: HiddenRow = field("h before the first step", "Gates(time=0).previous_state")
    cell_gradient: HiddenRow = field(
        "dL/dc before the first step",
        "StepGradient(time=0).cell_gradient * Gates(time=0).forget_gate",
        gradient_of="Memory(time=0).previous_cell",
    )
    state_gradient: HiddenRow = field(
        "dL/dh before the first step",
        gated.through_gates(GATES, "recurrent_weight", "(time=0)"),
        gradient_of="Gates(time=0).previous_state",
    )


class ParameterGradient(Record):
    """The gradient of one gate's rows of a parameter, added up over steps and sequences."""

    name: Word = key("prefix, gate and parameter; or prefix, head and parameter")
    shape: Shape = field("weights outputs x inputs, biases outputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/d parameter, row-major",
        gated.gradient_formulas(GATES, ("bias", "recurrent_bias")) | output.head_gradients(),
        gradient_of=gated.gradient_targets(GATES, ("bias",))
        | {
            f"name.endswith('.{gate}.recurrent_bias') and {bias} is not None": bias
            for gate in GATES
            for bias in (f"fixture.{gate}_recurrent_bias",)
        },
    )


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d (c_t, h_t) / d (c_{t-1}, h_{t-1}), from a backward pass with that seed."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    of: Word = key("the row's half of the pair: cell (c_t) or state (h_t)")
    coordinate: Int = key("of that half")
    carry: HiddenRow = field(
        "by c_{t-1}, gates and candidate held: of diag(f), or diag(o tanh'(c) f)",
        {
            "of == 'cell'": "one_hot(coordinate, hidden_width) * Gates.forget_gate",
            "": f"{SHOWN} * JacobianRow(of='cell').carry",
        },
    )
    by_cell: HiddenRow = field(
        "by c_{t-1} through the whole step",
        {
            "of == 'cell'": "one_hot(coordinate, hidden_width) * Gates.forget_gate",
            "": f"{SHOWN} * JacobianRow(of='cell').by_cell",
        },
    )
    cell_difference: HiddenRow = field("0, as no gate reads the cell", "by_cell - carry")
    by_state: HiddenRow = field(
        "by h_{t-1}: all of it through gates and candidate",
        {
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

    sequence: Int = key("0-based")
    coordinate: Int = key("of the last cell")
    full: HiddenRow = field(
        "the row through all steps, states included",
        "matrix_product(reshape(concat("
        "JacobianRow(coordinate=every).by_cell, JacobianRow(coordinate=every).by_state),"
        " time_steps, 2 * hidden_width, 2 * hidden_width)[::-1])[coordinate, :hidden_width]",
    )
    carried: Real = field(
        "this coordinate's forget gates of all steps, multiplied",
        "prod(Gates.forget_gate[:, coordinate])",
    )
    difference: Real = field("the row's own coordinate minus carried", "full[coordinate] - carried")

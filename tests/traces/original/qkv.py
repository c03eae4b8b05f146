"""Chapter 26."""

from functools import lru_cache
from typing import Any, NamedTuple

from ...core import scalar_port as port
from ...core.scalar_port import Cells, Node
from .differences import checked
from .spelling import in_brackets, vector, word

ROLES = ("query", "key", "value")


class Run(NamedTuple):
    x: Node
    weights: list[Node]
    outputs: list[Node]
    upstreams: list[Cells]
    loss: Node


def run(fixture: Any, **replaced: Cells) -> Run:
    x = leaf(fixture, "input", replaced)
    weights = [leaf(fixture, f"{role}_weight", replaced) for role in ROLES]
    upstreams = [port.leaf(getattr(fixture, f"{role}_upstream")) for role in ROLES]
    outputs = [port.matmul(x, weight) for weight in weights]
    losses = []
    for output, upstream in zip(outputs, upstreams, strict=True):
        loss = port.mul(output, upstream)
        while loss.shape:
            loss = port.sum_axis(loss, axis=0)
        losses.append(loss)
    query, key, value = losses
    total = port.add(port.add(query, key), value)
    return Run(x, weights, outputs, [node.cells for node in upstreams], total)


def leaf(fixture: Any, name: str, replaced: dict[str, Cells]) -> Node:
    made = port.leaf(getattr(fixture, name))
    return Node(made.shape, replaced[name]) if name in replaced else made


class Evidence(NamedTuple):
    made: Run
    gradients: dict[Node, Cells]
    counts: list[int]
    passed: bool
    query_changed: bool


@lru_cache(1)
def evidence(fixture: Any) -> Evidence:
    made = run(fixture)
    gradients = port.adjoints(made.loss, [1.0])
    counts, passed = [], True
    names = ("input", *(f"{role}_weight" for role in ROLES))
    for name, node in zip(names, (made.x, *made.weights), strict=True):

        def loss(cells: Cells, name: str = name) -> float:
            return run(fixture, **{name: cells}).loss.cells[0]

        check = checked(
            loss,
            node.cells,
            gradients[node],
            fixture.gradcheck_step,
            fixture.gradcheck_samples,
        )
        counts.append(len(check.samples))
        passed = passed and check.worst <= fixture.gradcheck_tolerance
    first, *others = made.weights[0].cells
    after = run(fixture, query_weight=[first + 1.0, *others]).outputs[0]
    return Evidence(made, gradients, counts, passed, after.cells != made.outputs[0].cells)


def trace(fixture: Any) -> list[str]:
    made, gradients, counts, passed, query_changed = evidence(fixture)
    (batch, tokens, model), head = made.x.shape, made.weights[0].shape[1]
    both = tuple(zip(ROLES, made.weights, strict=True))
    upstreams = "|".join(
        f"{role}_upstream={vector(cells)}"
        for role, cells in zip(ROLES, made.upstreams, strict=True)
    )
    emptied = [
        "|".join(
            [f"{axis}_input={in_brackets((*shape, model))}"]
            + [f"{axis}_{role}={in_brackets((*shape, head))}" for role in ROLES]
        )
        for axis, shape in (("batch", (0, tokens)), ("token", (2 * batch, 0)))
    ]
    checks = zip(("input", *(f"{role}_weight" for role in ROLES)), counts, strict=True)
    return [
        f"META|input_shape={in_brackets(made.x.shape)}|model_width={model}|head_width={head}"
        f"|bias=false|parameter_count={3 * model * head}|branch_order=query,key,value",
        f"INPUT|values={vector(made.x.cells)}",
        *(
            f"PROJECTION|role={role}|tensor={role[0].upper()}"
            f"|parameter={fixture.parameter_prefix}.{role}.weight"
            f"|weight_shape={in_brackets(weight.shape)}|weights={vector(weight.cells)}"
            f"|output_shape={in_brackets(output.shape)}|output={vector(output.cells)}"
            for (role, weight), output in zip(both, made.outputs, strict=True)
        ),
        f"BACKWARD|{upstreams}|input_gradient_shape={in_brackets(made.x.shape)}"
        f"|input_gradient={vector(gradients[made.x])}",
        *(
            f"WEIGHT_GRADIENT|role={role}|shape={in_brackets(weight.shape)}"
            f"|values={vector(gradients[weight])}"
            for role, weight in both
        ),
        f"INDEPENDENCE|changed=query|query_changed={word(query_changed)}"
        "|key_output=bitwise-unchanged|value_output=bitwise-unchanged",
        f"EMPTY_SHAPES|{'|'.join(emptied)}",
        "ERROR|case=rank-two|rejected=true|message=Q/K/V input must have rank three "
        "[batch, tokens, model_width], got rank 2",
        "ERROR|case=input-width|rejected=true|message=Q/K/V input final width must equal model "
        f"width {model}, got {model + 1}",
        "ERROR|case=branch-mismatch|rejected=true|message=Q/K/V model widths must match, got "
        f"query {model}, key {model + 1}, value {model}",
        "HISTORY|earlier_left=decoder-state|earlier_right=encoder-annotations"
        "|transformer_source=one-sequence|mapping=retrospective",
        "|".join(["PROOF", *(f"{name}_checks={count}" for name, count in checks)])
        + f"|tolerance={fixture.gradcheck_tolerance:.6f}|gradcheck={word(passed)}"
        "|replay=bitwise|names=unique|initialization=transactional",
        "NEXT|chapter=27-self-attention",
    ]


def report(fixture: Any) -> list[str]:
    made, gradients, counts, passed, _ = evidence(fixture)
    (batch, tokens, model), head = made.x.shape, made.weights[0].shape[1]
    prefix = fixture.parameter_prefix

    def rule(*leading: int) -> str:
        return f"{in_brackets((*leading, model))}->three*{in_brackets((*leading, head))}"

    def tensor(label: str, node: Node) -> str:
        return f"{label}=shape:{in_brackets(node.shape)} values:{vector(node.cells)}"

    checks = zip(("input", *ROLES), counts, strict=True)
    return [
        "chapter=26-qkv-projections",
        "prediction=three independent bias-free projections preserve batch and token axes",
        f"config=batch:{batch} tokens:{tokens} d_model:{model} d_head:{head} bias:false",
        tensor("input", made.x),
        *(tensor(f"{role}_weight", w) for role, w in zip(ROLES, made.weights, strict=True)),
        *(tensor(role, output) for role, output in zip(ROLES, made.outputs, strict=True)),
        f"parameter_names=[{','.join(f'{prefix}.{role}.weight' for role in ROLES)}]",
        f"parameter_count={3 * model * head} independent:true",
        f"shape_rule={rule(batch, tokens)}",
        f"batch_probe={rule(2 * batch, tokens)}",
        f"empty_tokens={rule(batch, 0)}",
        "history=additive_query:decoder_state additive_key_value:encoder_annotations "
        "self_attention_qkv:hidden_sequence",
        *(
            f"upstream_{role}={vector(cells)}"
            for role, cells in zip(ROLES, made.upstreams, strict=True)
        ),
        f"input_gradient={vector(gradients[made.x])}",
        *(
            f"{role}_weight_gradient={vector(gradients[weight])}"
            for role, weight in zip(ROLES, made.weights, strict=True)
        ),
        f"gradcheck={' '.join(f'{name}_checks:{count}' for name, count in checks)} "
        f"tolerance:{fixture.gradcheck_tolerance:.6f} passed:{word(passed)}",
        "initialization=seed:26 transactional:true independent:true",
        "errors=rank:true width:true model_mismatch:true head_mismatch:true duplicate_name:true",
        "same_fixture_replays_bitwise=true",
        "next=compare queries with keys and mix values",
    ]

"""Diagrams that fit a page, and what can be asked of a drawing."""

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from llm_trace.tools.diagram import asking
from llm_trace.tools.diagram.dot import dot
from llm_trace.tools.diagram.drawing import NothingToDraw, Wish, drawing, graph_for
from llm_trace.tools.diagram.figure import WIDTH, figure_of
from llm_trace.tools.diagram.graph import Graph, Group, Node
from llm_trace.tools.diagram.layout import acyclic
from llm_trace.tools.formulas.document import Cell
from llm_trace.tools.formulas.operands import Asked
from llm_trace.tools.loading import loaded

from ..originals import FOLDER
from ..program import refusal, run
from .documents import ENTRIES
from .test_diagram import check_dot, check_mermaid, check_svg, sound

SVG = "{http://www.w3.org/2000/svg}"
NINE: tuple[str, ...] = (
    "swiglu",
    "qkv",
    "attention-head",
    "attention-heads",
    "encoder-block",
    "gru",
    "lstm",
)
NINE += ("rnn-bptt", "model-ops")
WITHOUT = {"attention-cost", "sinusoidal-positions"}  # values that are not made of each other


def overview(name: str, fixture: Path | None = None, **wish: object) -> Graph:
    trace = loaded(name, str(fixture) if fixture else None)
    return graph_for(trace, Wish("svg", **wish))  # type: ignore[arg-type]


def edges(graph: Graph, *, back: bool = False) -> set[tuple[str, str]]:
    names = {node.id: node.label for node in graph.nodes}
    return {
        (names[edge.source], names[edge.target]) for edge in graph.edges if edge.backward == back
    }


def drawn(form: str, graph: Graph, name: str = "swiglu") -> str:
    return "".join(drawing(form, graph, loaded(name)))


def test_swiglu_has_two_branches_and_a_product() -> None:
    graph = overview("swiglu")
    assert edges(graph) == {
        ("input", "gate-silu"),
        ("input", "up"),
        ("gate-silu", "gated"),
        ("up", "gated"),
        ("gated", "output"),
    }
    assert edges(graph, back=True) == {
        ("upstream", "gated-gradient"),
        ("gated-gradient", "gate-gradient"),
        ("gated-gradient", "up-gradient"),
        ("gate-gradient", "input-gradient"),
        ("up-gradient", "input-gradient"),
    }
    gate = next(node for node in graph.nodes if node.label == "gate-silu")
    assert gate.notes == ("input @ gate_weight", "silu(gate-pre)")
    assert (gate.shape, gate.values) == ("2x3", ())


def test_qkv_has_three_projections() -> None:
    found = edges(overview("qkv"))
    for role in ("query", "key", "value"):
        assert {("INPUT", f"{role} output"), (f"{role} weights", f"{role} output")} <= found


def test_attention_goes_from_scores_to_softmax_to_mix() -> None:
    found = edges(overview("attention-head"))
    assert {("query", "scaled"), ("key", "scaled"), ("weight", "contribution")} <= found
    assert {("value", "contribution"), ("contribution", "output")} <= found
    assert {("exponential", "denominator"), ("denominator", "weight")} <= found
    heads = edges(overview("attention-heads"))
    assert {("query", "weights"), ("key", "weights"), ("weights", "output")} <= heads


def test_an_encoder_block_has_residual_paths() -> None:
    graph = overview("encoder-block")
    assert {
        ("INPUT", "LAYER-NORM first"),
        ("INPUT", "RESIDUAL first"),
        ("ATTENTION", "RESIDUAL first"),
        ("RESIDUAL first", "LAYER-NORM second"),
        ("RESIDUAL first", "RESIDUAL second"),
        ("MLP", "RESIDUAL second"),
        ("RESIDUAL second", "LAYER-NORM final"),
    } <= edges(graph)
    back = edges(graph, back=True)
    assert ("RESIDUAL-BACKWARD second", "RESIDUAL-BACKWARD first") in back


def test_gated_cells_show_one_step_and_what_comes_from_the_step_before() -> None:
    lstm = overview("lstm")
    assert {
        ("forget-gate", "kept"),
        ("previous-cell", "kept"),
        ("input-gate", "written"),
        ("candidate", "written"),
        ("output-gate", "state"),
        ("cell-tanh", "state"),
    } <= edges(lstm)
    before = {node.label: node.notes for node in lstm.nodes if node.label.startswith("previous")}
    assert before == {
        "previous-state": ("state, the time before",),
        "previous-cell": ("cell, the time before",),
    }
    assert {("update", "kept"), ("reset", "recurrent-term")} <= edges(overview("gru"))


def test_a_recurrent_network_is_unrolled_over_time(tmp_path: Path) -> None:
    graph = overview("rnn-bptt")
    states = [node for node in graph.nodes if node.label == "state"]
    assert [node.column for node in states] == [0, 1, 2]
    ids = [node.id for node in states]
    for source, target in pairwise(ids):
        assert (source, target) in {edge[:2] for edge in graph.edges}
    longer = tmp_path / "longer.toml"
    longer.write_text(f"inputs = {[0.5] * 9}\ntarget_values = {[0.25] * 9}\n")
    long = overview("rnn-bptt", longer)
    states = [node for node in long.nodes if node.label == "state"]
    (between,) = (node for node in long.nodes if node.label == "..." and not node.gradient)
    assert [node.column for node in states] == [0, 1, 3]
    assert (between.column, between.notes) == (2, ("6 more steps",))
    found = {edge[:2] for edge in long.edges}
    assert {(states[1].id, between.id), (between.id, states[2].id)} <= found
    assert (states[1].id, states[2].id) not in found
    assert figure_of(long)[0] <= WIDTH


def test_operations_of_a_tape_are_a_chain() -> None:
    chain = ["gather_rows", "matmul", "silu", "indexed_mean_nll"]
    assert {(f"FORWARD {one}", f"FORWARD {other}") for one, other in pairwise(chain)} == edges(
        overview("model-ops")
    )


@pytest.mark.parametrize("name", ENTRIES)
def test_every_overview_fits_a_page_and_leads_down(name: str) -> None:
    try:
        graph = overview(name)
    except NothingToDraw:
        assert name in WITHOUT
        return
    sound(graph)
    wide, high, boxes, paths, texts = figure_of(graph)
    if name in NINE:
        assert wide <= WIDTH
    gradients = {node.id for node in graph.nodes if node.gradient}
    for node, box in boxes.items():
        assert 0 <= box.x < box.x + box.wide <= wide
        assert 0 <= box.y < box.y + box.high <= high
        assert max(len(text) for text, _ in texts[node]) * 7.22 <= box.wide
        for other, there in boxes.items():
            apart = box.x + box.wide <= there.x or there.x + there.wide <= box.x
            above = box.y + box.high <= there.y or there.y + there.high <= box.y
            assert node == other or apart or above, (node, other)
    downward = acyclic(graph)
    for edge, path in zip(graph.edges, paths, strict=True):
        source, target = boxes[edge.source], boxes[edge.target]
        if edge in downward and edge.source not in gradients and edge.target not in gradients:
            assert source.y < target.y + target.high, edge
        points = [(int(x), int(y)) for x, y in re.findall(r"(-?\d+),(-?\d+)", path)]
        assert source.x <= points[0][0] <= source.x + source.wide
        assert target.x <= points[-1][0] <= target.x + target.wide
    check_svg(drawn("svg", graph))
    check_mermaid(drawn("mermaid", graph))
    check_dot(drawn("dot", graph))


def test_no_edge_passes_through_a_node() -> None:
    for name in NINE:
        graph = overview(name)
        _, _, boxes, paths, _ = figure_of(graph)
        for edge, path in zip(graph.edges, paths, strict=True):
            points = [(int(x), int(y)) for x, y in re.findall(r"(-?\d+),(-?\d+)", path)]
            for (x1, y1), (x2, y2) in pairwise(points):
                for node, box in boxes.items():
                    if node in edge[:2] or x1 != x2:
                        continue
                    inside = box.x < x1 < box.x + box.wide
                    between = min(y1, y2) < box.y + box.high and box.y < max(y1, y2)
                    assert not (inside and between), (name, edge, node)


def test_words_of_the_command_line(tmp_path: Path) -> None:
    here = "STATE[sequence=0,time=1].state"
    near = graph_for(loaded("gru"), Wish(around=here))
    assert {node.key for node in near.nodes} >= {"state", "kept", "written", "previous-state"}
    nearer = {node.id for node in near.nodes}
    wider = {node.id for node in graph_for(loaded("gru"), Wish(around=f"{here}:2")).nodes}
    assert nearer < wider
    only = graph_for(loaded("swiglu"), Wish(only=("POSITION-FORWARD",)))
    assert {node.family.partition(".")[0] for node in only.nodes} == {"POSITION-FORWARD"}
    forward = graph_for(loaded("swiglu"), Wish(forward=True))
    assert not any(node.gradient for node in forward.nodes)
    folded = graph_for(loaded("swiglu"), Wish(fold=True))
    gated = next(node for node in folded.nodes if node.family == "POSITION-FORWARD.gated")
    assert (gated.members, gated.label) == (2, "gated = gate-silu * up")
    for wish, expected in (
        (Wish(values="none"), ()),
        (Wish(), ("-0.26894142137", "0.0", "2.19317573589")),
        (Wish(values="full"), ("-0.268941421370", "0.000000000000", "2.193175735890")),
        (Wish(digits=3), ("-0.269", "0.000", "2.193")),
    ):
        nodes = graph_for(loaded("swiglu"), wish).nodes
        shown = next(node for node in nodes if node.id == "POSITION_FORWARD_position_0_gated")
        assert shown.values == expected
    right = graph_for(loaded("swiglu"), Wish("svg", direction="right"))
    assert "rankdir=LR" in drawn("dot", right)
    assert "rankdir=TB" in drawn("dot", overview("swiglu"))


def test_bookkeeping_stays_out_unless_it_is_asked_for() -> None:
    for level in ("records", "kinds"):
        graph = graph_for(loaded("model-ops"), Wish(level=level))
        kinds = {node.family.partition(".")[0] for node in graph.nodes}
        assert "FORWARD" in kinds
        assert not kinds & {"GRADCHECK", "ERROR", "FIXTURE"}
    asked = graph_for(loaded("gru"), Wish(level="records", only=("FIXTURE", "PREDICTION")))
    assert "FIXTURE.loss" in {node.family for node in asked.nodes}


def test_a_drawing_without_edges_is_refused_with_what_can_be_drawn() -> None:
    for form in ("svg", "dot", "mermaid", "tikz", "json"):
        assert refusal("diagram", "attention-cost", "--to", form) == (
            "attention-cost: expected values that are worked out from each other, found none; "
            "--to html steps through the records, `llm-trace show` lays them out"
        )
    assert refusal("diagram", "swiglu", "--only", "PARAMETER-GRADIENT") == (
        "swiglu: expected values that are worked out from each other, found none in this part; "
        "more --only, or a larger depth, adds what joins them"
    )
    assert refusal("diagram", "swiglu", "--only", "FORWARD") == (
        "--only: expected a kind that is drawn in records, found 'FORWARD'; "
        "did you mean POSITION-FORWARD?"
    )
    assert "expected one of the kinds" in refusal("diagram", "swiglu", "--around", "A.b")
    assert run("diagram", "attention-cost", "--to", "html").returncode == 0


def test_the_files_suffix_says_the_form(tmp_path: Path) -> None:
    beginnings = {
        "a.svg": "<svg ",
        "a.dot": "digraph ",
        "a.gv": "digraph ",
        "a.mmd": "%% ",
        "a.html": "<!doctype html>",
        "a.tex": "% ",
        "a.json": "{",
        "a.md": "%% ",
    }
    for name, beginning in beginnings.items():
        assert run("diagram", "swiglu", "-o", tmp_path / name).returncode == 0
        text = (tmp_path / name).read_text().lower()
        assert text.startswith(beginning), name
    assert refusal("diagram", "swiglu", "--to", "mermaid", "-o", tmp_path / "b.SVG") == (
        "--to: expected svg for a file that ends in .svg, found mermaid"
    )
    assert not (tmp_path / "b.SVG").exists()


def test_two_drawings_in_one_page_share_no_id_and_no_rule() -> None:
    texts = [drawn("svg", overview(name)) for name in ("swiglu", "linear-layers")]
    ids = [{*re.findall(r'\bid="([^"]*)"', text)} for text in texts]
    assert all(ids)
    assert not ids[0] & ids[1]
    for text, own in zip(texts, ids, strict=True):
        assert {*re.findall(r"url\(#([^)]*)\)", text)} <= own
        (mark,) = {name.partition("-")[0] for name in own}
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        rules = re.findall(r"^ *([^{}@]+) \{", style, re.MULTILINE)
        assert rules
        assert all(rule.strip().startswith(f".{mark} ") for rule in rules)
        assert f'class="{mark}"' in text
    assert texts[0] == drawn("svg", overview("swiglu"))


def test_a_screen_reader_has_a_name_a_description_and_every_node() -> None:
    root = ElementTree.fromstring(drawn("svg", overview("swiglu")))
    assert root.get("role") == "graphics-document"
    by_id = {element.get("id", ""): element for element in root.iter() if element.get("id")}
    assert by_id[root.get("aria-labelledby", "")].text == "swiglu-feed-forward-v1"
    described = by_id[root.get("aria-describedby", "")].text
    assert described is not None
    assert described.startswith("10 nodes, 10 edges.")
    assert " gated from gate-silu, up." in described
    groups = [*root.iter(f"{SVG}g")]
    assert [group.get("role") for group in groups] == ["img"] * 10
    assert "gated, gate-silu * up, 2x3" in {group.get("aria-label") for group in groups}
    mermaid = drawn("mermaid", overview("swiglu"))
    assert "  accTitle: swiglu-feed-forward-v1\n  accDescr: 10 nodes and 10 edges" in mermaid


GRAPH = b"""TRACE graph-v1 BEGIN
VARIABLE name=x0 shape=2x2 data=1.0,2.0,3.0,4.0
VARIABLE name=x1 shape=2x2 data=5.0,6.0,7.0,8.0 grad=0.5,0.5,0.5,0.5
FUNCTION name=Mul inputs=x0,x1 outputs=y
VARIABLE name=y shape=2x2 data=5.0,12.0,21.0,32.0
TRACE graph-v1 END
"""


def of_other(text: bytes, *arguments: str) -> tuple[str, str]:
    done = run("diagram", "-", *arguments, stdin=text)
    assert done.returncode == 0, done
    return done.stdout.decode(), done.stderr.decode()


def test_other_programs_names_make_edges_and_values() -> None:
    text, said = of_other(GRAPH)
    assert said == ""
    for name in ("x0", "x1"):
        assert f"VARIABLE_name_{name} --> FUNCTION_name_Mul\n" in text
    assert "FUNCTION_name_Mul --> VARIABLE_name_y\n" in text
    assert "5.0, 12.0, 21.0, 32.0" in text
    assert ":::gradient" not in text
    previous = GRAPH.replace(b"inputs=", b"prev=").replace(b"outputs=", b"next=")
    assert of_other(previous)[0].count("-->") == 3


def test_edges_can_be_named_and_what_leads_nowhere_is_said() -> None:
    other = GRAPH.replace(b"inputs=", b"takes=").replace(b"outputs=", b"makes=")
    assert refusal("diagram", "-", stdin=other) == (
        "-: expected values that are worked out from each other, found no field that names "
        "another record; --edges 'FIELD->FIELD' names the fields that lead to others; see --help"
    )
    assert of_other(other, "--edges", "takes->makes")[0].count("-->") == 3
    text, said = of_other(other, "--edges", "takes->")
    assert text.count("-->") == 2
    assert said == "llm-trace: -: names in makes lead nowhere; --edges 'makes->' draws them\n"
    for wrong in ("takes", "->", "a->b->c"):
        assert "--edges: expected FIELDS->FIELDS" in refusal(
            "diagram", "-", "--edges", wrong, stdin=other
        )


def test_dot_folds_large_graphs_and_keeps_labels_short(tmp_path: Path) -> None:
    fixture = tmp_path / "big.toml"
    shape = "shape = [300, 2]"
    fixture.write_text(
        f"input = {{ {shape}, uniform = 1 }}\nupstream = {{ {shape}, uniform = 2 }}\n"
    )
    for level in ("overview", "records"):
        done = run("diagram", "swiglu", "--fixture", fixture, "--to", "dot", "--level", level)
        assert 0 < done.stdout.count(b"[label=") < 40, level
    label = '"' * 20_000
    node = Node("n", "g", label, "", (label,), False, 0, "k", "K.k", notes=(label,))
    text = "".join(dot(Graph("t", (Group("g", "G"),), (node,), ())))
    assert max(map(len, re.findall(r'label="(.*)"', text))) < 16_384
    check_dot(text)


def test_an_overview_asks_no_more_of_a_longer_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading takes as long as it takes; what is counted here is fields that formulas take."""
    counts = []
    original = Asked.field
    asked = [0]

    def field(self: Asked, cell: Cell) -> object:
        asked[0] += 1
        return original(self, cell)

    monkeypatch.setattr(Asked, "field", field, raising=False)
    monkeypatch.setattr(asking, "_LARGE", 50)
    graphs = []
    for positions in (30, 300):
        fixture = tmp_path / f"{positions}.toml"
        shape = f"shape = [{positions}, 2]"
        fixture.write_text(
            f"input = {{ {shape}, uniform = 1 }}\nupstream = {{ {shape}, uniform = 2 }}\n"
        )
        asked[0] = 0
        graphs.append(overview("swiglu", fixture))
        counts.append(asked[0])
    assert counts[0] == counts[1]
    plain = overview("swiglu")
    for graph in graphs:
        assert edges(graph) == edges(plain)
        assert edges(graph, back=True) == edges(plain, back=True)
    assert {node.shape for node in graphs[1].nodes} == {"300x2", "300x3"}


def test_where_few_records_do_not_say_it_all_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name: edges(overview(name)) for name in NINE}
    monkeypatch.setattr(asking, "_LARGE", 1)
    monkeypatch.setattr(asking, "_FIRST", 2)
    monkeypatch.setattr(asking, "_LAST", 1)
    for name in NINE:
        assert edges(overview(name)) == expected[name], name


def test_tikz_has_a_node_and_a_path_for_each() -> None:
    graph = overview("lstm")
    text = drawn("tikz", graph)
    assert text.count("\\node[") == len(graph.nodes)
    assert text.count("\\draw[") == len(graph.edges)
    assert text.isascii()
    assert "\\begin{tikzpicture}" in text
    assert text.endswith("\\end{tikzpicture}\n")


def test_json_has_everything() -> None:
    graph = graph_for(loaded("swiglu"), Wish("json"))
    found = json.loads(drawn("json", graph))
    assert [node["id"] for node in found["nodes"]] == [node.id for node in graph.nodes]
    assert [tuple(edge.values()) for edge in found["edges"]] == [*map(tuple, graph.edges)]
    gated = next(node for node in found["nodes"] if node["key"] == "gated")
    assert gated["values"] == ["-0.26894142137", "0.0", "2.19317573589"]


def test_another_programs_overview_is_a_figure() -> None:
    if not FOLDER.exists():
        pytest.skip("the original programs' outputs are not here")
    path = FOLDER / "ch31-decoder-block" / "trace.txt"
    done = run("diagram", path, "--to", "svg")
    assert done.returncode == 0
    check_svg(done.stdout.decode())

"""Graphs of traces, and what draws them."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.lines import parse_line
from llm_trace.tools.diagram.dot import dot
from llm_trace.tools.diagram.graph import Edge, Graph, Group, Node, folded, graph_of
from llm_trace.tools.diagram.layout import layout
from llm_trace.tools.diagram.mermaid import MAX_EDGES, MAX_TEXT, mermaid
from llm_trace.tools.diagram.references import graph_of_lines
from llm_trace.tools.diagram.svg import svg

from ..originals import FOLDER, ORIGINALS, original
from ..program import run
from .documents import ENTRIES, golden

SVG = "{http://www.w3.org/2000/svg}"


def drawn(command: str) -> Graph:
    return graph_of(golden(command), command)


def other(path: Path) -> Graph:
    texts = path.read_text().splitlines()
    lines = [parse_line(text, number, path.name) for number, text in enumerate(texts, 1)]
    return graph_of_lines(lines, path.parent.name)


def arrows(graph: Graph, *parts: str) -> set[tuple[str, str]]:
    """The edges between nodes in whose ids these parts occur, as `record.field`."""
    names = {node.id: f"{node.group}.{node.key}" for node in graph.nodes}
    return {
        (names[edge.source], names[edge.target])
        for edge in graph.edges
        if any(part in edge.target for part in parts)
    }


def test_swiglu_goes_through_two_branches() -> None:
    here = "POSITION_FORWARD_position_0"
    back = "POSITION_BACKWARD_position_0"
    assert arrows(drawn("swiglu"), here, back) == {
        ("fixture.input", f"{here}.input"),
        (f"{here}.input", f"{here}.gate-pre"),
        ("fixture.gate_weight", f"{here}.gate-pre"),
        (f"{here}.gate-pre", f"{here}.gate-silu"),
        (f"{here}.input", f"{here}.up"),
        ("fixture.up_weight", f"{here}.up"),
        (f"{here}.gate-silu", f"{here}.gated"),
        (f"{here}.up", f"{here}.gated"),
        (f"{here}.gated", f"{here}.output"),
        ("fixture.down_weight", f"{here}.output"),
        ("fixture.upstream", f"{back}.upstream"),
        (f"{back}.upstream", f"{back}.gated-gradient"),
        ("fixture.down_weight", f"{back}.gated-gradient"),
        (f"{back}.gated-gradient", f"{back}.gate-gradient"),
        (f"{here}.up", f"{back}.gate-gradient"),
        (f"{here}.gate-pre", f"{back}.gate-gradient"),
        (f"{back}.gated-gradient", f"{back}.up-gradient"),
        (f"{here}.gate-silu", f"{back}.up-gradient"),
        (f"{back}.gate-gradient", f"{back}.input-gradient"),
        (f"{back}.up-gradient", f"{back}.input-gradient"),
        ("fixture.gate_weight", f"{back}.input-gradient"),
        ("fixture.up_weight", f"{back}.input-gradient"),
    }


def test_four_occurrences_gather_into_three_rows() -> None:
    graph = drawn("model-ops")
    gathered = {
        (source, target)
        for source, target in arrows(graph, "EMBEDDING")
        if source.startswith("OCCURRENCE")
    }
    assert gathered == {
        ("OCCURRENCE_position_0.contribution", "EMBEDDING_row_1.gradient"),
        ("OCCURRENCE_position_1.contribution", "EMBEDDING_row_1.gradient"),
        ("OCCURRENCE_position_2.contribution", "EMBEDDING_row_1.gradient"),
        ("OCCURRENCE_position_3.contribution", "EMBEDDING_row_2.gradient"),
    }
    rows = [node.id for node in graph.nodes if node.family == "EMBEDDING.gradient"]
    assert rows == [f"EMBEDDING_row_{row}_gradient" for row in range(3)]


def test_qkv_goes_through_three_branches() -> None:
    graph = drawn("qkv")
    outputs = [f"PROJECTION_role_{role}" for role in ("query", "key", "value")]
    edges = arrows(graph, *outputs)
    for group in outputs:
        assert ("INPUT.values", f"{group}.output") in edges
        assert (f"{group}.weights", f"{group}.output") in edges
    assert len({source for source, target in edges if target.endswith(".output")}) == 4


def test_an_edge_is_dashed_on_the_way_back_only() -> None:
    graph = drawn("swiglu")
    gradients = {node.id for node in graph.nodes if node.gradient}
    assert gradients
    assert all(edge.backward == (edge.target in gradients) for edge in graph.edges)


def sound(graph: Graph) -> None:
    """Ids are unique and plain, and edges and groups lead somewhere."""
    ids = [node.id for node in graph.nodes]
    groups = [group.id for group in graph.groups]
    assert len(ids) == len({*ids})
    assert len(groups) == len({*groups})
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in ids + groups)
    assert {node.group for node in graph.nodes} <= {*groups}
    assert {end for edge in graph.edges for end in edge[:2]} <= {*ids}
    assert len(graph.edges) == len({*graph.edges})


@pytest.mark.parametrize("command", ENTRIES)
def test_every_trace_can_be_drawn(command: str) -> None:
    graph = drawn(command)
    assert len(graph.nodes) > 2
    sound(graph)
    sound(folded(graph))
    check_mermaid(mermaid(graph))
    check_svg("".join(svg(graph)))
    check_dot("".join(dot(graph)))


@original
def test_every_trace_of_another_program_can_be_drawn() -> None:
    assert len(ORIGINALS) == 34
    for path in ORIGINALS:
        graph = other(path)
        sound(graph)
        check_mermaid(mermaid(graph))
        check_svg("".join(svg(graph)))
        check_dot("".join(dot(graph)))


@original
def test_edges_of_another_program_come_from_the_fields_that_name_sources() -> None:
    graph = other(FOLDER / "ch31-decoder-block" / "trace.txt")
    names = {node.id: node.label for node in graph.nodes}
    merge = {
        (names[edge.source], names[edge.target])
        for edge in graph.edges
        if "MERGE name=attention" in names[edge.source] + names[edge.target]
    }
    assert ("SHAPE stage=input", "MERGE name=attention") not in merge
    assert ("STAGE name=input", "MERGE name=attention") in merge
    assert ("STAGE name=attention-branch", "MERGE name=attention") in merge


def check_mermaid(text: str) -> None:
    assert len(text) < 50_000
    edges = re.findall(r"^  (\w+) (?:-->|-\.->) (\w+)$", text, re.MULTILINE)
    nodes = re.findall(r'^    (\w+)\["[^"]*"\](?::::?gradient)?$', text, re.MULTILINE)
    assert len(edges) < 500
    assert {end for edge in edges for end in edge} <= {*nodes}
    assert text.count("subgraph ") == len(re.findall(r"^  end$", text, re.MULTILINE))
    known = (
        r'%% .*|flowchart LR|  subgraph \w+\["[^"]*"\]|  end|  classDef .*|    \w+\[.*|  \w+ -.*'
    )
    assert all(re.fullmatch(known, line) for line in text.splitlines())


def check_svg(text: str) -> None:
    root = ElementTree.fromstring(text)
    boxes = [
        tuple(int(box.get(key, "")) for key in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
    ]
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    for x, y, wide, high in boxes:
        assert 0 < x < x + wide < width
        assert 0 < y < y + high < height
    assert not overlapping(boxes)


def overlapping(boxes: Iterable[tuple[int, ...]]) -> bool:
    columns: dict[int, list[tuple[int, int]]] = {}
    for x, y, _, high in boxes:
        columns.setdefault(x, []).append((y, y + high))
    spans = [sorted(column) for column in columns.values()]
    return any(a[1] > b[0] for span in spans for a, b in pairwise(span))


def check_dot(text: str) -> None:
    assert text.count("{") - len(re.findall(r'"[^"\n]*\{', text)) <= text.count("}")
    if shutil.which("dot"):
        done = subprocess.run(["dot", "-Tplain"], input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr


def test_svg_shows_values_shapes_and_formulas_whole() -> None:
    root = ElementTree.fromstring("".join(svg(drawn("swiglu"))))
    (node,) = (
        group
        for group in root.iter(f"{SVG}g")
        if group.get("data-node") == "POSITION_FORWARD_position_0_gated"
    )
    assert [text.text for text in node.iter(f"{SVG}text")] == [
        "POSITION-FORWARD position=0",
        "gated = gate-silu * up",
        "shape 3",
        "-0.268941421370, 0.000000000000,",
        "  2.193175735890",
    ]
    assert node.get("data-record") == "1"
    assert node.get("data-field") == "gated"


NAMES = [f"n{number}" for number in range(9)]
EDGES = st.lists(
    st.builds(Edge, st.sampled_from(NAMES), st.sampled_from(NAMES), st.booleans()),
    unique_by=lambda edge: edge[:2],
)


def made(edges: list[Edge], texts: dict[str, str] | None = None) -> Graph:
    texts = texts or {}
    nodes = tuple(
        Node(
            id=name,
            group="g",
            label=texts.get(name, name),
            shape="",
            values=("1.0",),
            gradient=any(edge.backward and edge.target == name for edge in edges),
            record=0,
            key=name,
            family=f"K.{name}",
        )
        for name in NAMES
    )
    return Graph("t", (Group("g", "G"),), nodes, tuple(edges))


@given(EDGES)
def test_no_two_nodes_stand_on_one_spot_and_every_graph_is_drawn(edges: list[Edge]) -> None:
    graph = made(edges)
    spots = layout(graph)
    assert [*spots] == NAMES
    assert len({*spots.values()}) == len(NAMES)
    check_svg("".join(svg(graph)))
    check_mermaid(mermaid(graph))


@given(EDGES)
def test_operands_stand_to_the_left(edges: list[Edge]) -> None:
    ordered = [edge for edge in edges if edge.source < edge.target]  # without a way back
    spots = layout(made(ordered))
    assert all(spots[edge.source].column < spots[edge.target].column for edge in ordered)


@given(st.dictionaries(st.sampled_from(NAMES), st.text(st.characters(codec="utf-8"), max_size=20)))
def test_hostile_labels_stay_labels(texts: dict[str, str]) -> None:
    graph = made([Edge("n0", "n1", False)], texts)
    drawings = {"svg": "".join(svg(graph)), "mermaid": mermaid(graph), "dot": "".join(dot(graph))}
    check_svg(drawings["svg"])
    check_mermaid(drawings["mermaid"])
    check_dot(drawings["dot"])
    for drawing in drawings.values():
        assert drawing.replace("\n", "").isprintable()


# What is no text (XML knows no U+FFFE, nor most controls), moves text, or is a mark of a language.
UNSEEN = "a\x01\u202e\u2066\ufffe\U0001ffffb"
SEEN = r"a\x01\u202e\u2066\ufffe\U0001ffffb"


@pytest.mark.parametrize("text", [UNSEEN, r"a\nb\lc\N", "&lt;&#60;", "a\tb"])
def test_a_label_is_drawn_as_what_it_is(text: str) -> None:
    graph = made([], {"n0": text})._replace(title=text)
    seen = {UNSEEN: SEEN, "a\tb": r"a\tb"}.get(text, text)
    root = ElementTree.fromstring("".join(svg(graph)))
    lines = [line.text for line in root.iter(f"{SVG}text")]
    assert lines.count(seen) == 1
    assert root.findtext(f"{SVG}title") == seen
    marks = [("&", "#amp;"), ("#(?!amp;)", "#35;"), ("<", "#lt;"), (r"\\", "#92;")]
    entities = seen
    for mark, entity in marks:
        entities = re.sub(mark, entity, entities)
    drawing = mermaid(graph)
    assert f'n0["{entities}<br/>1.0"]' in drawing
    assert drawing.startswith(f"%% {entities}\n")
    escaped = seen.replace("\\", "\\\\").replace("&", "&amp;")
    assert f'n0 [label="{escaped}\\n1.0"]' in "".join(dot(graph))


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg", "html"])
def test_no_drawing_of_a_file_holds_what_is_not_seen(tmp_path: Path, form: str) -> None:
    file = tmp_path / "other.trace"
    file.write_text('NODE name=a\u202eb label="c\ufffed" values=1.0\n', encoding="utf-8")
    done = run("diagram", file, "--to", form)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    unseen = {mark for mark in text if not mark.isprintable()}
    assert unseen <= {"\n"}
    if form == "html":
        assert r"\u202e" in text.split('id="data">')[0]  # the text
        assert r'"a\\u202eb"' in text.split('id="data">')[1]  # what the script writes


def test_a_large_graph_is_folded_for_mermaid_and_says_so() -> None:
    nodes = tuple(
        Node(f"n{i}", "g", "x = y", "3", ("1.0",) * 3, False, i, "x", f"K.x{i % 5}")
        for i in range(900)
    )
    edges = tuple(Edge(f"n{i}", f"n{i + 1}", False) for i in range(899))
    text = mermaid(Graph("t", (Group("g", "G"),), nodes, edges))
    check_mermaid(text)
    assert text.count("(x180)") == 5
    assert len(re.findall(" --> ", text)) == 5


def test_a_graph_that_cannot_be_folded_is_cut_and_says_so() -> None:
    nodes = tuple(
        Node(f"n{i}", "g", "x = y", "", (), False, i, "x", f"K.x{i}") for i in range(2000)
    )
    edges = tuple(Edge(f"n{i}", f"n{i + 1}", False) for i in range(1999))
    text = mermaid(Graph("t", (Group("g", "G"),), nodes, edges))
    check_mermaid(text)
    left = len(nodes) - len(re.findall(r"^    K_\w+\[", text, re.MULTILINE))
    assert f"{left} nodes are left out" in text
    assert len(text) <= MAX_TEXT
    assert text.count(" --> ") <= MAX_EDGES


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    for form in ("mermaid", "dot", "svg"):
        outputs = {
            run("diagram", "model-ops", "--to", form, environment={"PYTHONHASHSEED": seed}).stdout
            for seed in ("0", "1")
        }
        assert len(outputs) == 1
        assert outputs.pop().isascii()

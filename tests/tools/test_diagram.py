"""Graphs of traces, and what draws them."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from llm_trace.commands.diagram import command
from llm_trace.report.lines import TraceError, parse_line
from llm_trace.tools.diagram.dot import dot
from llm_trace.tools.diagram.drawing import Wish, drawing, graph_for
from llm_trace.tools.diagram.graph import Edge, Graph, Group, Node, folded, graph_of
from llm_trace.tools.diagram.layout import layout
from llm_trace.tools.diagram.mermaid import MAX_EDGES, MAX_TEXT, mermaid
from llm_trace.tools.diagram.references import graph_of_lines
from llm_trace.tools.diagram.svg import MOST_EDGES, MOST_NODES, svg
from llm_trace.tools.loading import loaded

from ..golden_files import DotFile, Drawing, JsonFile, MermaidFile, SvgFile, TikzFile
from ..originals import FOLDER, ORIGINALS, original
from ..program import run
from .documents import ENTRIES, golden

FORMS: list[str] = next(vars(o.type)["choices"] for o in command.params if o.name == "form")
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
        r'%% .*|flowchart (?:LR|TB)|  subgraph \w+\["[^"]*"\]|  end|  classDef .*|    \w+\[.*|'
        r"  \w+ -.*|  acc(?:Title|Descr): [A-Za-z0-9 ,.()=+*-]*"
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


EVIL = (
    *('"', "'", "\\", '\\"', "`", "{", "}", "[", "]", "#", ";", "&", "<", ">", "%%{init: {}}%%"),
    *("</script><script>alert(1)</script>", "</svg><b>", "]]>", "<!--", "-->", "&lt;b&gt;", "${x}"),
    *('" onload="x', "' onload='x", '"] --> n1', 'x"]; evil [label="x', "click n0 call x()", "$x"),
)


@pytest.mark.parametrize("form", FORMS)
def test_hostile_labels_stay_labels(form: str, tmp_path: Path) -> None:
    """Whatever a label says, the drawing consists of the same things as with a plain one."""
    plain = skeleton(form, "label", tmp_path)
    for evil in EVIL:
        assert skeleton(form, evil, tmp_path) == plain, evil


def skeleton(form: str, label: str, folder: Path) -> frozenset[str]:
    file = folder / "mine.trace"
    file.write_text(f"A word={json.dumps(label)} x=1.0\nB y=2.0\n")
    graph = made([Edge("n0", "n1", False)], {"n0": label})
    group = Group("g", label)
    graph = graph._replace(title=label, groups=(group,))
    return PARTS[form]("".join(drawing(form, graph, loaded(str(file), None))))


class Tags(HTMLParser):
    """Every element with its attributes' names; the ids of those that can be asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.add(" ".join([tag, *sorted(name for name, _ in attributes)]))

    def handle_comment(self, data: str) -> None:
        self.found.add("a comment")


def tags(text: str) -> frozenset[str]:
    parser = Tags()
    parser.feed(text)
    return frozenset(parser.found)


def lines_without_texts(text: str) -> frozenset[str]:
    """The lines of a language in which a text stands between quotes, with \\ before a quote."""
    return frozenset(re.sub(r'"(?:[^"\\]|\\.)*"', "TEXT", text).splitlines())


def flowchart(text: str) -> frozenset[str]:
    """A Mermaid text has no quote in it, and ends with the line if it is a comment."""
    texts = r'"[^"]*"|^%% .*|(?<=^  accTitle: )[A-Za-z0-9 ,.()=+*-]*'
    return frozenset(re.sub(texts, "TEXT", text, flags=re.MULTILINE).splitlines())


def picture(text: str) -> frozenset[str]:
    """A TikZ text whose braces are balanced, without what stands in the nodes."""
    text = text.partition("\n")[2]  # without the title, which is a comment
    depth = 0
    for mark in re.findall(r"(?<!\\)(?:\\\\)*([{}])", text):
        depth += {"{": 1, "}": -1}[mark]
        assert depth >= 0
    assert depth == 0
    node = r"\\node\[[^\]]*\] (\(\w+\)) at \([0-9.]+,[0-9.]+\) \{.*\};"
    lines = [re.sub(node, r"NODE \1", line) for line in text.splitlines()]
    return frozenset(re.sub(r"\(-?[0-9.]+,-?[0-9.]+\)", "", line) for line in lines)


def facts(text: str) -> frozenset[str]:
    """The keys of a JSON text's objects."""
    found = json.loads(text)
    names = ("groups", "nodes", "edges")
    return frozenset(f"{name}.{key}" for name in names for one in found[name] for key in one)


PARTS: dict[str, Callable[[str], frozenset[str]]] = {
    "mermaid": flowchart,
    "dot": lines_without_texts,
    "svg": tags,
    "html": tags,
    "tikz": picture,
    "json": facts,
}


def test_every_form_is_tested_against_hostile_labels() -> None:
    assert {*PARTS} == {*FORMS}


@given(st.dictionaries(st.sampled_from(NAMES), st.text(st.characters(codec="utf-8"), max_size=20)))
def test_any_label_can_be_drawn(texts: dict[str, str]) -> None:
    printable = {
        name: re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]", "?", text)
        for name, text in texts.items()
    }
    graph = made([Edge("n0", "n1", False)], printable)
    check_svg("".join(svg(graph)))
    check_mermaid(mermaid(graph))
    check_dot("".join(dot(graph)))


def crossings(graph: Graph) -> int:
    """Pairs of edges between the same two columns that cross."""
    spots = layout(graph)
    edges = [(spots[edge.source], spots[edge.target]) for edge in graph.edges]
    return sum(
        (a.row - c.row) * (b.row - d.row) < 0
        for (a, b), (c, d) in combinations(edges, 2)
        if (a.column, b.column) == (c.column, d.column)
    )


def test_edges_that_need_not_cross_do_not() -> None:
    """Three ladders whose rungs are given in another order on each side."""
    pairs = [("n0", "n5"), ("n1", "n3"), ("n2", "n4"), ("n5", "n6"), ("n3", "n8"), ("n4", "n7")]
    graph = made([Edge(source, target, False) for source, target in pairs])
    assert crossings(graph) == 0


DRAWINGS: dict[str, type[Drawing]] = {
    "mermaid": MermaidFile,
    "dot": DotFile,
    "svg": SvgFile,
    "tikz": TikzFile,
    "json": JsonFile,
}


@pytest.mark.parametrize("form", [form for form in FORMS if form != "html"])
def test_draws_the_accepted_bytes(form: str, snapshot: SnapshotAssertion) -> None:
    """The page holds this drawing and is looked at in a browser."""
    trace = loaded("swiglu", None)
    text = "".join(drawing(form, graph_for(trace, Wish(form)), trace))
    assert text.encode() == snapshot.use_extension(DRAWINGS[form])(name="swiglu")


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


def test_a_drawing_of_names_without_end_is_cut_and_says_so() -> None:
    names = ",".join(f"a{i}" for i in range(20_000))
    line = parse_line(f"A sources={names}", 1, "F")
    text = "".join(svg(graph_of_lines([line], "F")))
    drawn = text.count("<rect ")
    assert drawn <= MOST_NODES + 1
    assert f"{20_002 - drawn} nodes are left out" in text
    ElementTree.fromstring(text)
    line = parse_line(f"A sources={','.join(f'a{i}' for i in range(100_001))}", 3, "F")
    with pytest.raises(TraceError, match="F:3:1: expected at most 100000 names"):
        graph_of_lines([line], "F")
    nodes = tuple(Node(f"n{i}", "g", "x", "", (), False, i, "x", f"K.x{i}") for i in range(150))
    edges = tuple(Edge(one.id, other.id, False) for one in nodes for other in nodes)
    text = "".join(svg(Graph("t", (Group("g", "G"),), nodes, edges)))
    assert 0 < text.count("<path class") <= MOST_EDGES
    assert "nodes are left out" in text


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    for form in FORMS:
        outputs = {
            run("diagram", "model-ops", "--to", form, environment={"PYTHONHASHSEED": seed}).stdout
            for seed in ("0", "1")
        }
        assert len(outputs) == 1
        assert outputs.pop().isascii() or form == "html"  # whose script has other signs

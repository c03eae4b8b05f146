"""What is drawn of a trace, and in which language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...errors import Unexpected, one_of
from ...escaping import bounded, printable
from ...report.stdout import tell
from ..loading import Loaded
from ..places import at_path
from ..show.text import short
from .graph import SHOWN, Graph, Node, folded, graph_of
from .kinds import kinds
from .marks import Marks, marked
from .overview import overview
from .references import graph_of_lines, leading, left_out
from .ways import BOOKKEEPING

FORMS = ("mermaid", "dot", "svg", "html", "tikz", "json")
LEVELS = ("overview", "kinds", "records")
SUFFIXES = {
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".tikz": "tikz",
    ".tex": "tikz",
    ".json": "json",
}
_OVERVIEW = ("svg", "dot", "tikz", "html")  # drawn from above where nothing else is said
_MOST = 4_000  # fields of records that are nodes of their own
_FEW = 60  # records of another program that are


class Wish(NamedTuple):
    """What a drawing is to show."""

    form: str = "mermaid"
    level: str = ""  # "" for the one that is usual for the form
    only: tuple[str, ...] = ()  # KIND or KIND.field
    around: str = ""  # PATH or PATH:depth
    fold: bool = False
    forward: bool = False
    values: str = "short"  # or "none" or "full"
    digits: int | None = None
    direction: str = ""  # "down" or "right", "" for the one that is usual for the level
    edges: tuple[str, ...] = ()  # FIELDS->FIELDS of another program


class NothingToDraw(Unexpected):
    """A trace, or a part of one, whose nodes no edge joins."""


def graph_for(trace: Loaded, wish: Wish, marks: Marks | None = None) -> Graph:
    """The graph that is wished for, with `marks` on it. Raises LlmTraceError without edges."""
    above = wish.form in _OVERVIEW and not wish.around
    above = above and (wish.form != "html" or trace.document is not None)
    level = wish.level or ("overview" if above else "records")
    if wish.fold and level == "records":
        level = "kinds"
    graph = _of_document(trace, level, wish) if trace.document else _of_lines(trace, level, wish)
    graph = _without_bookkeeping(graph, wish.only)
    if wish.only:
        graph = _only(graph, wish.only, level)
    if wish.around:
        graph = _around(graph, trace, wish.around)
    if wish.forward:
        graph = _kept(graph, lambda node: not node.gradient)
    if not graph.edges and wish.form != "html":
        raise NothingToDraw(printable(trace.file), *_nothing(trace, wish))
    if marks:
        graph = marked(graph, marks, each=level != "overview")
    if wish.direction:
        graph = graph._replace(figure=wish.direction == "down")
    return graph._replace(nodes=tuple(_with_values(node, wish) for node in graph.nodes))


def drawing(form: str, graph: Graph, trace: Loaded) -> Iterable[str]:
    """The graph in one of the languages."""
    match form:
        case "mermaid":
            from .mermaid import mermaid

            return (mermaid(graph),)
        case "dot":
            from .dot import dot

            return dot(graph)
        case "svg":
            from .svg import svg

            return svg(graph)
        case "tikz":
            from .tikz import tikz

            return tikz(graph)
        case "json":
            from .data import json_of

            return json_of(graph)
    return (html(graph, trace),)


def html(graph: Graph, trace: Loaded) -> str:
    """The page that steps through the records, with the drawing in it."""
    from .descriptions import records_of
    from .lexical import records_of_lines
    from .page import page, require_size
    from .svg import svg

    require_size(trace.file, trace.lines)
    described = (
        records_of(trace.document, trace.loss) if trace.document else records_of_lines(trace.lines)
    )
    about = trace.entry.title if trace.entry else "A trace whose formulas are not known here."
    drawn = "".join(svg(graph)) if graph.nodes else ""
    return page(trace.title, about, described, trace.lines, drawn)


def _of_document(trace: Loaded, level: str, wish: Wish) -> Graph:
    document = trace.document
    assert document is not None
    if level == "overview":
        graph = overview(document, trace.title, trace.loss, forward=wish.forward, only=wish.only)
        if graph.edges or wish.only:
            return graph
        bare = kinds(document, trace.title)  # where all that there is are copies
        return _kept(bare, lambda node: not (wish.forward and node.gradient))._replace(figure=True)
    count = sum(len(entry.record.fields) for entry in document.entries)
    if level == "kinds" or (count > _MOST and not wish.around and wish.form != "html"):
        return kinds(document, trace.title)
    return graph_of(document, trace.title, None if wish.values == "full" else SHOWN)


def _of_lines(trace: Loaded, level: str, wish: Wish) -> Graph:
    leads = leading(wish.edges)
    graph = graph_of_lines(trace.lines, trace.title, leads)
    if graph.edges and (others := left_out(trace.lines, leads)):
        found = ", ".join(others)
        hint = f"--edges '{others[0]}->' draws them"
        tell(f"{printable(trace.file)}: names in {found} lead nowhere; {hint}")
    if level == "overview":
        bare = tuple(node._replace(values=(), total=0) for node in graph.nodes)
        graph = graph._replace(nodes=bare, figure=True)
    large = len(graph.nodes) > _FEW and level == "overview"
    return folded(graph) if large or level == "kinds" else graph


def _without_bookkeeping(graph: Graph, asked: Sequence[str]) -> Graph:
    """Without records of sizes, checks and errors that nothing else is worked out from."""
    wanted = {one.partition(".")[0] for one in asked}
    aside = {
        node.id for node in graph.nodes if node.family.partition(".")[0] in {*BOOKKEEPING} - wanted
    }
    used = {edge.source for edge in graph.edges if edge.target not in aside}
    served = {edge.source for edge in graph.edges}  # of the fixture, what only checks use
    kept = {
        node.id
        for node in graph.nodes
        if node.id in used
        or (node.id not in aside and (node.record is not None or node.id not in served))
    }
    return _kept(graph, lambda node: node.id in kept) if aside else graph


def _only(graph: Graph, only: Sequence[str], level: str) -> Graph:
    known = dict.fromkeys(node.family.partition(".")[0] for node in graph.nodes)
    for one in only:
        if one.partition(".")[0] not in known:
            expected, hint = one_of(
                one.partition(".")[0], known, f"a kind that is drawn in {level}"
            )
            raise Unexpected("--only", expected, f"{one!a}", hint)
    wanted = {*only}

    def chosen(node: Node) -> bool:
        return node.family in wanted or node.family.partition(".")[0] in wanted

    return _kept(graph, chosen)


def _around(graph: Graph, trace: Loaded, around: str) -> Graph:
    """The nodes that so many edges lead to or from."""
    matched = re.fullmatch(r"(.+?)(?::([0-9]{1,4}))?", around)
    path, depth = (matched[1], int(matched[2] or 1)) if matched else (around, 1)
    near = {*_named(graph, trace, path)}
    joined: dict[str, list[str]] = {}
    for edge in graph.edges:
        joined.setdefault(edge.source, []).append(edge.target)
        joined.setdefault(edge.target, []).append(edge.source)
    outer = [*near]
    for _ in range(depth):
        outer = [other for node in outer for other in joined.get(node, ()) if other not in near]
        near |= {*outer}
    return _kept(graph, lambda node: node.id in near)


def _named(graph: Graph, trace: Loaded, path: str) -> list[str]:
    """The ids of the nodes at a path, or of that name."""
    if trace.document is None:
        names = (path, f"name={path}")
        found = [one.id for one in graph.nodes if {one.label, *one.label.split()} & {*names}]
        if not found:
            raise Unexpected("--around", "the name of a node", f"{bounded(path)!a}")
        return found
    number = next(iter(at_path(trace.document, path, trace.file)), None)
    whole = "." not in re.sub(r"\[[^\]]*\]", "", path)
    found = [
        one.id
        for one in graph.nodes
        if number
        and one.record == number.cell.entry.ordinal
        and (whole or one.key == number.cell.declared.key)
    ]
    if not found:
        expected = "a field that a formula uses or works out"
        raise Unexpected("--around", expected, f"{bounded(path)!a}")
    return found


def _kept(graph: Graph, keeps: Callable[[Node], bool]) -> Graph:
    nodes = tuple(node for node in graph.nodes if keeps(node))
    ids = {node.id for node in nodes}
    edges = tuple(edge for edge in graph.edges if edge.source in ids and edge.target in ids)
    used = {node.group for node in nodes}
    groups = tuple(group for group in graph.groups if group.id in used)
    return graph._replace(groups=groups, nodes=nodes, edges=edges)


def _with_values(node: Node, wish: Wish) -> Node:
    if wish.values == "none":
        return node._replace(values=(), total=0)
    if wish.digits is not None:
        return node._replace(values=tuple(short(text, wish.digits) for text in node.values))
    exact = node.values if wish.values == "full" else map(_without_zeros, node.values)
    return node._replace(values=tuple(exact))


def _without_zeros(text: str) -> str:
    """A real without the zeros at its end, which say nothing but how many digits are printed."""
    whole, point, decimals = text.rpartition(".")
    if not (point and whole[-1:].isdigit() and decimals.isdigit()):
        return text
    return f"{whole}.{decimals[0]}{decimals[1:].rstrip('0')}"


def _nothing(trace: Loaded, wish: Wish) -> tuple[str, str, str]:
    """What was expected, what was found, and what can be drawn or shown instead."""
    expected = "values that are worked out from each other"
    if wish.only or wish.around:
        return expected, "none in this part", "more --only, or a larger depth, adds what joins them"
    if trace.document is None:
        hint = "--edges 'FIELD->FIELD' names the fields that lead to others; see --help"
        return expected, "no field that names another record", hint
    return expected, "none", "--to html steps through the records, `llm-trace show` lays them out"

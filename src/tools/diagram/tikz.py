r"""A graph as a picture of plain TikZ: `\usepackage{tikz}` is all that it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...escaping import visible
from .graph import Graph
from .svg import laid_out

_MARKS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
}
_STYLE = r"""\begin{tikzpicture}[x=0.75pt,y=-0.75pt,
  every node/.style={draw=blue!45!black,rounded corners=2pt,inner sep=2pt,align=center,
    font=\ttfamily\scriptsize},
  gradient/.style={draw=orange!65!black,densely dashed},
  guilty/.style={draw=red,very thick}, inherited/.style={draw=orange!80!black,thick},
  right/.style={draw=green!60!black,thick}, unseen/.style={draw=gray,text=gray},
  edge/.style={->,blue!45!black}, backward/.style={->,orange!65!black,densely dashed}]
"""


def tikz(graph: Graph) -> Iterator[str]:
    """The picture, with every node where the SVG has it."""
    graph, laid = laid_out(graph)
    yield f"% {_comment(graph.title)}\n{_STYLE}"
    for node in graph.nodes:
        box = laid.boxes[node.id]
        lines = [
            rf"\textbf{{{_escaped(line.text)}}}" if line.style == "label" else _escaped(line.text)
            for line in laid.texts[node.id]
        ]
        style = ",".join(filter(None, ("gradient" if node.gradient else "", node.verdict)))
        size = f"minimum width={box.wide * 0.75:g}pt,minimum height={box.high * 0.75:g}pt"
        style = f"{style},{size}" if style else size
        x, y = box.x + box.wide / 2, box.y + box.high / 2
        text = r"\\".join(lines)
        yield f"\\node[{style}] ({node.id}) at ({x:g},{y:g}) {{{text}}};\n"
    for edge, path in zip(graph.edges, laid.paths, strict=True):
        yield f"\\draw[{'backward' if edge.backward else 'edge'}] {_path(path)};\n"
    yield "\\end{tikzpicture}\n"


def _path(path: str) -> str:
    """The path of an SVG: lines and curves between absolute points."""
    text = ""
    for command, points in re.findall(r"([MLC])([^MLC]*)", path):
        pairs = [f"({pair})" for pair in points.split()]
        match command:
            case "M":
                text += pairs[0]
            case "L":
                text += f" -- {pairs[0]}"
            case "C":
                text += f" .. controls {pairs[0]} and {pairs[1]} .. {pairs[2]}"
    return text


def _escaped(text: str) -> str:
    """The text for LaTeX, which need not know what is beyond ASCII."""
    plain = (mark if mark.isascii() else ascii(mark)[1:-1] for mark in visible(text))
    return "".join(_MARKS.get(mark, mark) for part in plain for mark in part)


def _comment(text: str) -> str:
    return "".join(mark if mark.isascii() else "?" for mark in visible(text))

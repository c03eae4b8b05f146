"""Grids of texts with names for rows and columns, in the width that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .text import Line, Span, columns, fitting, is_number, justified, short, width, wrapped

GAP = 2  # columns between cells
ENDLESS = 1 << 30
_LEVELS = 6  # of shading


class Page(NamedTuple):
    """How much room there is, and how numbers are told."""

    wide: int  # columns
    high: int  # lines of one list, at most
    digits: int  # behind a point


class Grid(NamedTuple):
    """Cells with a name for each column, and for each row one text for each of `headings`."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    names: Sequence[str]  # of the columns
    cells: Sequence[Sequence[str]]  # rows may be shorter than there are columns
    notes: Sequence[str] = ()  # behind each row, or below it


def grid_lines(grid: Grid, page: Page, indent: int) -> list[Line]:
    """The grid in lines. What is left out of its middle is said."""
    grid = _with_short_names(grid, page.digits)
    rows = shortened(range(len(grid.rows)), page.high)
    heads = _heads(grid, rows)
    left = indent + columns(heads[0])
    places = [*range(len(grid.names))]
    if len(places) > 2 * page.wide:  # no more of them are looked at than might be shown
        places = [*places[: page.wide], *places[-page.wide :]]
    present = [row for row in rows if row is not None]
    texts = _texts(grid, present, places, page.digits)
    wide = _width(texts)
    brief = [name.partition(" ")[0] for name in grid.names]
    if left + wide * len(places) > page.wide and len({*brief}) == len({*grid.names}):
        texts = _texts(grid._replace(names=brief), present, places, page.digits)
        wide = _width(texts)
    if page.wide - left < wide * min(len(places), 2):
        return _below(grid, page, indent, rows, texts)
    chunks = _chunks(places, len(grid.names), (page.wide - left) // wide, len(rows), page.high)
    most = _largest(grid, present, places)
    lines: list[Line] = []
    for chunk in chunks:
        top = [("dim", _cell(texts, None, place, wide)) for place in chunk]
        lines.append([("dim", " " * indent + heads[0]), *top])
        for row, head in zip(rows, heads[1:], strict=True):
            if row is None:
                lines.append(_left_out(len(grid.rows) - len(present), "rows", indent))
                continue
            line: list[Span] = [("", " " * indent), ("key", head)]
            for place in chunk:
                line.append((_shade(grid, row, place, most), _cell(texts, row, place, wide)))
            note = grid.notes[row] if grid.notes and chunk is chunks[-1] else ""
            lines += explained([line], note, 0, page.wide)
        if None in chunk:
            lines.append(_left_out(len(grid.names) - len(chunk) + 1, "columns", indent))
    return lines


def _below(
    grid: Grid,
    page: Page,
    indent: int,
    rows: Sequence[int | None],
    texts: Mapping[tuple[int | None, int], str],
) -> list[Line]:
    """The grid where names leave no room beside them: each row's cells stand below its name."""
    lines = _named(grid.headings, "dim", page.wide, indent)
    numbered = all(map(str.isdecimal, grid.names))
    for row in rows:
        if row is None:
            lines.append(_left_out(len(grid.rows) - len(rows) + 1, "rows", indent))
            continue
        lines += _named(grid.rows[row], "key", page.wide, indent)
        cells = [(grid.names[place], text) for (at, place), text in texts.items() if at == row]
        told = [text if numbered else f"{name} {text.strip()}" for name, text in cells]
        per = max(1, (page.wide - indent) // (GAP + max(map(columns, told), default=0)))
        per = per if numbered else 1
        parts = shortened(range(-(-len(told) // per)), page.high)
        for part in parts:
            some = [] if part is None else told[part * per : (part + 1) * per]
            lines.append([("", " " * indent + "".join(f"  {text}" for text in some or ["…"]))])
        note = grid.notes[row] if grid.notes else ""
        lines += explained([[], []], note, 0, page.wide)[2:]
    return lines


def _named(names: Sequence[str], style: str, wide: int, indent: int) -> list[Line]:
    """The names of a row in lines of their own."""
    texts = wrapped("  ".join(filter(None, names)), wide - indent)
    return [[("", " " * indent), (style, text)] for text in texts]


def _with_short_names(grid: Grid, digits: int) -> Grid:
    """The rows with numbers of few decimals in their names, where these tell them apart still."""
    rows = [tuple(short(name, digits) for name in names) for names in grid.rows]
    return grid._replace(rows=rows) if len({*rows}) == len({*grid.rows}) else grid


def _left_out(count: int, what: str, indent: int) -> Line:
    return [("dim", f"{' ' * indent}… {count} {what} left out …")]


def explained(lines: list[Line], formula: str, column: int, wide: int) -> list[Line]:
    """The lines with a formula behind the only one of them, or below."""
    if not formula:
        return lines
    start = max(column, width(lines[0])) + GAP
    if len(lines) == 1 and start + 2 + columns(formula) <= wide:
        spaces = " " * (start - width(lines[0]))
        return [[*lines[0], ("", spaces), ("dim", f"= {formula}")]]
    below = enumerate(wrapped(formula, wide - 6))
    return [*lines, *([("dim", f"    {' ' if at else '='} {text}")] for at, text in below)]


def shortened(places: Sequence[int], most: int) -> list[int | None]:
    """The places, or as many of the first and last, with None for those in the middle."""
    if len(places) <= most:
        return [*places]
    first = most // 2
    return [*places[:first], None, *places[len(places) - (most - 1 - first) :]]


def _chunks(
    places: Sequence[int], count: int, per: int, rows: int, most: int
) -> list[list[int | None]]:
    """The columns that stand side by side, chunk below chunk where that is not too high."""
    if count > per >= 3 and -(-count // per) * rows > most:
        return [shortened(places, per)]
    return [[*places[start : start + per]] for start in range(0, len(places), per)]


def _heads(grid: Grid, rows: Sequence[int | None]) -> list[str]:
    """What stands left of the cells, in one width; a name that stays the same is told once."""
    told = [() if row is None else grid.rows[row] for row in rows]
    table = [grid.headings, *told]
    widths = [
        max(columns(one[at]) for one in table if one) + GAP for at in range(len(grid.headings))
    ]
    heads = []
    for before, names in pairwise([(), *table]):
        same = 0
        while same < min(len(before), len(names) - 1) and before[same] == names[same]:
            same += 1
        shown = ["" if at < same else name for at, name in enumerate(names)]
        pairs = zip(shown, widths, strict=False)
        heads.append("".join(justified(name, wide) for name, wide in pairs))
    return heads


def _texts(
    grid: Grid, rows: Sequence[int], places: Sequence[int], digits: int
) -> dict[tuple[int | None, int], str]:
    """The cells by row and column, of one width, and the columns' names, whose row is None."""
    found = [(row, place) for row in rows for place in places if place < len(grid.cells[row])]
    cells = [short(grid.cells[row][place], digits) for row, place in found]
    fit = fitting(cells)
    texts: dict[tuple[int | None, int], str] = {
        (None, place): grid.names[place] for place in places
    }
    texts.update(zip(found, (fit(cell) for cell in cells), strict=True))
    return texts


def _width(texts: Mapping[tuple[int | None, int], str]) -> int:
    """The width of a column with the space before it."""
    names = max((columns(text) for (row, _), text in texts.items() if row is None), default=0)
    wide = max(map(columns, texts.values()), default=0)
    return wide + (1 if names < wide else GAP)


def _cell(
    texts: Mapping[tuple[int | None, int], str], row: int | None, place: int | None, wide: int
) -> str:
    text = "…" if place is None else texts.get((row, place), "")
    return justified(text, wide, right=True)


def _largest(grid: Grid, rows: Sequence[int], places: Sequence[int]) -> float:
    """The largest size of the numbers, 0 where the grid is not shaded: it is no matrix of reals."""
    cells = [text for row in rows for text in grid.cells[row]] if len(grid.cells) > 1 else []
    if len(places) < 2 or not any("." in text for text in cells):
        return 0.0
    sizes = [abs(float(text)) for text in cells if is_number(text)]
    return max((size for size in sizes if size < float("inf")), default=0.0)


def _shade(grid: Grid, row: int, place: int | None, most: float) -> str:
    """`+4` for a number that is large and positive, `-1` for a small negative one."""
    if not most or place is None or place >= len(grid.cells[row]):
        return ""
    text = grid.cells[row][place]
    size = abs(float(text)) / most if is_number(text) else 0.0
    if not 0.0 < size <= 1.0:  # nor where it is no number
        return ""
    level = min(int(size * _LEVELS), _LEVELS - 1)
    return f"{'-' if text.startswith('-') else '+'}{level}"

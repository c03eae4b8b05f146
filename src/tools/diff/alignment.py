"""Which records of two files belong together: by their text, else by their kind and key fields.

Lines do not count, so that one record more makes nothing after it differ.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from .keys import Keys
from .matching import Matching
from .nearness import Near, near_pairs, unordered_pairs
from .sources import Section, Source

Item = tuple[int, Hashable]
"""A place and what stands there."""

_DEPTH = 50  # of records that are single among those between single ones


class Pair(NamedTuple):
    """A record on both sides or one, by the indices of its lines."""

    old: int | None
    new: int | None
    moved: bool = False
    equal: bool = False  # in the text of the whole line


class Alignment(NamedTuple):
    """The pairs that are worth a word, in the new file's order, and how many more there are."""

    pairs: list[Pair]
    same: int  # equal and in place


def paired_sections(
    old: Source, new: Source, olds: Sequence[Section], news: Sequence[Section]
) -> list[tuple[Section | None, Section | None]]:
    """The sections that belong together, in the new file's order, then those that are gone.

    A trace belongs to one of the same name and lines, else to the next one of its name, whatever
    the version; single ones to each other.
    """
    if len(olds) == len(news) == 1:
        return [(olds[0], news[0])]
    equal = _matched(_whole(old, olds), _whole(new, news))
    left_old = _stems(olds, {i for i, _ in equal})
    left_new = _stems(news, {j for _, j in equal})
    partners = {j: i for i, j in [*equal, *_between(equal, left_old, left_new)]}
    kept = [(olds[partners[j]] if j in partners else None, news[j]) for j in range(len(news))]
    return [*kept, *((olds[i], None) for i in sorted({*range(len(olds))} - {*partners.values()}))]


def aligned(
    old: Source,
    new: Source,
    olds: range,
    news: range,
    keys: Keys,
    near: Near | None = None,
    matching: Matching | None = None,
) -> Alignment:
    """Align the records of two sections. Raises TraceError for a line that has to be parsed.

    Those that nothing tells apart pair by nearness, if `near` says what that is.
    """
    is_unordered = (matching or Matching()).is_unordered
    before, after = _equal_ends(old.lines, new.lines, olds, news)
    ends = (*zip(olds[:before], news[:before], strict=True), *_ends(olds, news, after))
    elided = [*_elided(old, ends)]
    olds, news = olds[before : len(olds) - after], news[before : len(news) - after]
    equal = _equal_lines(old.lines, new.lines, olds, news)
    left_old = _identified(old, olds, {i for i, _ in equal}, keys)
    left_new = _identified(new, news, {j for _, j in equal}, keys)
    other = _near(equal, left_old, left_new, near, is_unordered) if near else []
    other += _between(
        [*equal, *other],
        _without(left_old, {i for i, _ in other}),
        _without(left_new, {j for _, j in other}),
    )
    other += _between(
        [*equal, *other],
        _ambiguous(left_old, {i for i, _ in other}, keys),
        _ambiguous(left_new, {j for _, j in other}, keys),
    )
    moved = moves(sorted([*equal, *other]))
    kinds = {i: old.kind(i) for i in moved}
    still = {i for i, kind in kinds.items() if is_unordered(kind)}
    pairs = [Pair(i, j, moved=True, equal=True) for i, j in equal if i in moved - still]
    pairs += [*elided, *_elided(old, (pair for pair in equal if pair[0] not in moved - still))]
    for i in moved:
        keys.of(old.entry(i).kind)  # refused now, if one is, and not in the middle of the output
    same = before + len(equal) + after - sum(pair.equal for pair in pairs)
    pairs += [Pair(i, j, i in moved - still) for i, j in other]
    gone, come = {i for i, _ in left_old}, {j for j, _ in left_new}
    pairs += [Pair(i, None) for i in gone - {i for i, _ in other}]
    pairs += [Pair(None, j) for j in come - {j for _, j in other}]
    stays = [(i, j) for i, j in sorted([*equal, *other]) if i not in moved]
    return Alignment(_in_order(pairs, stays, news.start), same)


def moves(pairs: Sequence[tuple[int, int]]) -> set[int]:
    """The old indices to move, as few as can be, so that the new ones rise; pairs come by the old.

    What stays is a longest increasing subsequence of the new indices.
    """
    if all(one < other for (_, one), (_, other) in pairwise(pairs)):
        return set()
    ends: list[int] = []  # of the best run of each length, the new index that it ends with
    tails: list[int] = []  # and its place in `pairs`
    before: list[int] = []  # the place before each pair in the best run that it ends
    for place, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(tails[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        tails[length : length + 1] = [place]
    stays: set[int] = set()
    place = tails[-1] if tails else -1
    while place >= 0:
        stays.add(pairs[place][0])
        place = before[place]
    return {i for i, _ in pairs} - stays


def _equal_ends(
    old: Sequence[Hashable], new: Sequence[Hashable], olds: range, news: range
) -> tuple[int, int]:
    """How many records are equal at the beginning, and how many more at the end."""
    shorter = min(len(olds), len(news))
    before = 0
    while before < shorter and old[olds[before]] == new[news[before]]:
        before += 1
    after = 0
    while after < shorter - before and old[olds[-1 - after]] == new[news[-1 - after]]:
        after += 1
    return before, after


def _ends(olds: range, news: range, after: int) -> Iterator[tuple[int, int]]:
    """The last pairs of two runs."""
    return zip(olds[len(olds) - after :], news[len(news) - after :], strict=True)


def _elided(old: Source, pairs: Iterable[tuple[int, int]]) -> Iterator[Pair]:
    """Equal lines that may have a list without all its numbers, which none is known to equal."""
    for i, j in pairs:
        line = old.lines[i]
        if "..." in line or "…" in line:
            yield Pair(i, j, equal=True)


def _equal_lines(
    old: Sequence[str], new: Sequence[str], olds: range, news: range
) -> list[tuple[int, int]]:
    """The lines with one text: at once where all stand in the same places, else wherever."""
    if len(olds) == len(news):
        pairs = [*zip(olds, news, strict=True)]
        differing = [(i, j) for i, j in pairs if old[i] != new[j]]
        others = {old[i] for i, _ in differing}, {new[j] for _, j in differing}
        if not (any(new[j] in others[0] for j in news) or any(old[i] in others[1] for i in olds)):
            return [pair for pair in pairs if old[pair[0]] == new[pair[1]]]
    return _matched([(i, old[i]) for i in olds], [(j, new[j]) for j in news])


def _near(
    equal: Sequence[tuple[int, int]],
    olds: Sequence[Item],
    news: Sequence[Item],
    near: Near,
    is_unordered: Callable[[str], bool],
) -> list[tuple[int, int]]:
    """Pairs of records of one identity that comes several times, between equal lines in order."""
    repeated = {
        identity
        for side in (olds, news)
        for identity, times in Counter(map(itemgetter(1), side)).items()
        if times > 1
    }
    if not repeated:
        return []
    moved = moves(sorted(equal))
    stays = sorted(pair for pair in equal if pair[0] not in moved)
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for side, items in enumerate((olds, news)):
        marks = [pair[side] for pair in stays]
        for place, identity in items:
            if identity in repeated:
                free = isinstance(identity, tuple) and is_unordered(identity[0])
                part = 0 if free else bisect_left(marks, place)
                groups.setdefault((identity, free, part), ([], []))[side].append(place)
    found: list[tuple[int, int]] = []
    for (_, free, _), (left, right) in groups.items():  # type: ignore[misc]
        found += (unordered_pairs if free else near_pairs)(left, right, near)
    return found


def _matched(olds: Sequence[Item], news: Sequence[Item]) -> list[tuple[int, int]]:
    """Pairs of one identity: of those that come again the ones between the same others first."""
    pairs = _in_place(olds, news) if _some_come_again(olds, news) else []
    done_old, done_new = {i for i, _ in pairs}, {j for _, j in pairs}
    left_old = [item for item in olds if item[0] not in done_old]
    left_new = [item for item in news if item[0] not in done_new]
    return [*pairs, *_in_turn(left_old, left_new)]


def _between(
    equal: Sequence[tuple[int, int]], olds: Sequence[Item], news: Sequence[Item]
) -> list[tuple[int, int]]:
    """The same for what is left beside pairs that are known."""
    if not (olds and news):
        return []
    if not _some_come_again(olds, news):
        return _in_turn(olds, news)
    known_old = [(i, place) for place, (i, _) in enumerate(equal)]
    known_new = [(j, place) for place, (_, j) in enumerate(equal)]
    pairs = _matched(
        sorted([*olds, *known_old], key=itemgetter(0)),
        sorted([*news, *known_new], key=itemgetter(0)),
    )
    known = {i for i, _ in equal}
    return [(i, j) for i, j in pairs if i not in known]


def _some_come_again(olds: Sequence[Item], news: Sequence[Item]) -> bool:
    """Whether an identity of both sides comes several times on one."""
    a, b = (Counter(map(itemgetter(1), side)) for side in (olds, news))
    return any(a[identity] > 1 or b[identity] > 1 for identity in a.keys() & b.keys())


def _in_turn(olds: Iterable[Item], news: Sequence[Item]) -> list[tuple[int, int]]:
    """Pairs of one identity, the first with the first and so on."""
    waiting: dict[Hashable, list[int]] = {}
    for j, identity in reversed(news):
        waiting.setdefault(identity, []).append(j)
    return [(i, places.pop()) for i, identity in olds if (places := waiting.get(identity))]


def _in_place(olds: Sequence[Item], news: Sequence[Item]) -> list[tuple[int, int]]:
    """Pairs of one identity, as a patience diff finds them.

    What comes once on both sides parts the others, among which something comes once again.
    """
    a, b = ([identity for _, identity in side] for side in (olds, news))
    found: list[tuple[int, int]] = []
    todo = [(range(len(a)), range(len(b)), _DEPTH)]
    while todo:
        old, new, depth = todo.pop()
        before, after = _equal_ends(a, b, old, new)
        found += zip(old[:before], new[:before], strict=True)
        found += zip(old[len(old) - after :], new[len(new) - after :], strict=True)
        old, new = old[before : len(old) - after], new[before : len(new) - after]
        single = _single(a, b, old, new) if depth else []
        found += single
        if not single:
            found += _in_turn([(i, a[i]) for i in old], [(j, b[j]) for j in new])
            continue
        i, j = old.start, new.start
        for next_i, next_j in (*single, (old.stop, new.stop)):
            if i < next_i and j < next_j:
                todo.append((range(i, next_i), range(j, next_j), depth - 1))
            i, j = next_i + 1, next_j + 1
    return [(olds[i][0], news[j][0]) for i, j in found]


def _single(
    a: Sequence[Hashable], b: Sequence[Hashable], olds: range, news: range
) -> list[tuple[int, int]]:
    """What comes once on both sides, as far as it is in order."""
    known: list[dict[Hashable, int]] = []
    for identities, places in ((a, olds), (b, news)):
        counts = Counter(identities[place] for place in places)
        known.append({identities[i]: i for i in places if counts[identities[i]] == 1})
    pairs = [(i, known[1][identity]) for identity, i in known[0].items() if identity in known[1]]
    moved = moves(pairs)
    return [(i, j) for i, j in pairs if i not in moved]


def _whole(source: Source, sections: Sequence[Section]) -> list[Item]:
    """Each section with its name and lines."""
    lines = (source.lines[section.records.start : section.records.stop] for section in sections)
    names = (section.name for section in sections)
    return [*enumerate(zip(names, map(tuple, lines), strict=True))]


def _stems(sections: Sequence[Section], taken: set[int]) -> list[Item]:
    """Each section that is left with its name without the version."""
    return [(i, section.stem) for i, section in enumerate(sections) if i not in taken]


def _identified(
    source: Source, records: range, taken: set[int], keys: Keys
) -> list[tuple[int, tuple[str, tuple[str, ...]]]]:
    """What is left of the records, with what tells each apart."""
    left = (i for i in records if i not in taken)
    return [(i, (source.kind(i), keys.values(source, i))) for i in left]


def _ambiguous(
    left: Sequence[tuple[int, tuple[str, tuple[str, ...]]]], taken: set[int], keys: Keys
) -> list[Item]:
    """What is left even then of kinds whose fields do not tell all records apart."""
    return [(i, kind) for i, (kind, _) in left if i not in taken and keys.is_ambiguous(kind)]


def _without(left: Sequence[Item], taken: set[int]) -> list[Item]:
    """What is not taken."""
    return [item for item in left if item[0] not in taken]


def _in_order(pairs: list[Pair], stays: list[tuple[int, int]], start: int) -> list[Pair]:
    """Sorted by the new file's lines; what is gone goes after what stood before it."""
    olds = [i for i, _ in stays]

    def place(pair: Pair) -> tuple[int, int]:
        if pair.new is not None:
            return pair.new, -1
        assert pair.old is not None
        index = bisect_left(olds, pair.old)
        return (stays[index - 1][1] if index else start - 1), pair.old

    return sorted(pairs, key=place)

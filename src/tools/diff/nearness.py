"""Records that nothing names, paired by what they say: the same within a tolerance, in order."""

from collections.abc import Callable, Sequence

Near = Callable[[int, int], bool]
"""Whether two records, by the indices of their lines, are the same within the tolerance."""

Pairs = list[tuple[int, int]]

_MOST_EDITS = 400  # beyond which records pair by their place, as finding the fewest takes too long
_MOST_TRIES = 200_000  # pairs that are looked at


def near_pairs(olds: Sequence[int], news: Sequence[int], near: Near) -> Pairs:
    """As many pairs as can be without crossings, as a diff of lines finds them."""
    before = 0
    shorter = min(len(olds), len(news))
    while before < shorter and near(olds[before], news[before]):
        before += 1
    after = 0
    while after < shorter - before and near(olds[-1 - after], news[-1 - after]):
        after += 1
    middle_old = olds[before : len(olds) - after]
    middle_new = news[before : len(news) - after]
    found = [*zip(olds[:before], news[:before], strict=True)]
    found += _shortest_edit(middle_old, middle_new, near)
    return [*found, *zip(olds[len(olds) - after :], news[len(news) - after :], strict=True)]


def unordered_pairs(olds: Sequence[int], news: Sequence[int], near: Near) -> Pairs:
    """Each record with the first that it is near to, wherever that stands."""
    left, found, tries = [*news], Pairs(), 0
    for i in olds:
        for place, j in enumerate(left):
            tries += 1
            if near(i, j):
                found.append((i, j))
                del left[place]
                break
        if tries > _MOST_TRIES:
            break
    return found


def _shortest_edit(olds: Sequence[int], news: Sequence[int], near: Near) -> Pairs:
    """Pairs on the path of fewest insertions and deletions; none where these are too many.

    Myers 1986, An O(ND) Difference Algorithm and Its Variations, figure 2.
    """
    n, m = len(olds), len(news)
    if not (n and m):
        return []
    farthest = {1: 0}  # of each diagonal, how far into the old side
    trace: list[dict[int, int]] = []
    tries = 0
    for edits in range(min(n + m, _MOST_EDITS) + 1):
        trace.append(dict(farthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and farthest[k - 1] < farthest[k + 1])
            x = farthest[k + 1] if down else farthest[k - 1] + 1
            while x < n and 0 <= x - k < m and near(olds[x], news[x - k]):
                x += 1
                tries += 1
            tries += 1
            farthest[k] = x
            if x >= n and x - k >= m:
                return [(olds[i], news[j]) for i, j in _walked_back(trace, n, m)]
        if tries > _MOST_TRIES:
            break
    return []


def _walked_back(trace: Sequence[dict[int, int]], x: int, y: int) -> Pairs:
    """The pairs of a path, from its end."""
    found: Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        farthest, k = trace[edits], x - y
        down = k == -edits or (k != edits and farthest[k - 1] < farthest[k + 1])
        before = k + 1 if down else k - 1
        start = farthest[before] if edits else 0
        floor = start if down else start + 1
        if not edits:
            floor = 0
        while x > floor:
            x, y = x - 1, y - 1
            found.append((x, y))
        if edits:
            x, y = start, start - before
    return found[::-1]

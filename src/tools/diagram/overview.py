"""A trace as a figure: a node an operation, whatever positions, heads and times there are.

On the way there stands what the loss is worked out from, and on the way back the gradients of that;
where there is no loss, all that is worked out. Where a record uses the one of the step before, and
a step has few operations, steps stand side by side, the first ones and the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from ..formulas.document import Document
from .bundles import Bundles, Operation, Place
from .graph import Edge, Graph, Group, Names, Node
from .operations import brief, is_product, words
from .ways import ELLIPSIS, Way, way_back, way_there

MOST = 16  # operations one way; of more, those of a record are one node
WIDE = 24  # characters of a line in a node
_UNROLLED = 5  # operations of a step, at most, whose steps stand side by side
_LINES = 3  # of formulas in a node


def overview(
    document: Document,
    title: str,
    loss: str | None,
    *,
    forward: bool = False,
    only: Sequence[str] = (),
) -> Graph:
    """The figure. `loss` is the expression whose gradients the trace prints.

    Where there are `only` some kinds, all that is worked out in these is drawn instead.
    """
    kinds = [one.partition(".")[0] for one in only]
    bundles = Bundles(document)
    there = way_there(bundles, loss, kinds)
    there.shorten()
    stepping = next((name for name, _ in bundles.shifted.most_common(1)), "")
    if stepping and _operations(there) <= _UNROLLED:
        bundles = Bundles(document, stepping)
        there = way_there(bundles, loss, kinds)
        there.shorten()
    by_record = not bundles.steps and _operations(there) > MOST
    if by_record:
        there.by_record()
    drawing = _Drawing(bundles, title)
    drawing.add(there, "forward", {})
    if not forward and not only:
        back, parameters = way_back(bundles, there)
        back.shorten()
        if by_record:
            back.by_record()
        drawing.add(back, "backward", parameters, there)
    return drawing.graph()


def _operations(way: Way) -> int:
    """How many nodes work something out."""
    return sum(1 for operation in way.operations.values() if operation.sources)


class _Drawing:
    """Nodes and edges of the ways that are added."""

    def __init__(self, bundles: Bundles, title: str) -> None:
        self._bundles = bundles
        self._title = title
        self._names = Names()
        self._groups: list[Group] = []
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._ids: dict[Place, str] = {}

    def graph(self) -> Graph:
        """What has been added."""
        groups, nodes, edges = (*self._groups,), (*self._nodes,), (*self._edges,)
        return Graph(self._title, groups, nodes, edges, figure=True)

    def add(
        self, way: Way, label: str, parameters: Mapping[Place, list[str]], there: Way | None = None
    ) -> None:
        """A way as a group; one back, beside the way there whose gradients it has."""
        group = Group(self._names.of(label), label)
        used = {source for one in way.operations.values() for source in one.sources}
        alone = {place for place, one in way.operations.items() if not one.sources} - used
        ids: dict[Place, str] = {}
        trained: dict[Place, list[str]] = {}
        for source, found in parameters.items():
            trained.setdefault(way.now(source), []).extend(found)
        for place, operation in way.operations.items():
            if place in alone and len(way.operations) > 1:
                continue
            node = self._node(operation, group.id, there is not None, trained.get(place, []))
            if there:
                targets = [self._ids.get(there.now(target), "") for target in operation.targets]
                node = node._replace(opposite=next(filter(None, targets), ""))
            self._nodes.append(node)
            ids[place] = node.id
        self._edges += [
            Edge(ids[source], ids[place], there is not None)
            for place, operation in way.operations.items()
            for source in operation.sources
            if source in ids and place in ids
        ]
        if ids:
            self._groups.append(group)
        if not there:
            self._ids = ids

    def _node(
        self, operation: Operation, group: str, gradient: bool, parameters: list[str]
    ) -> Node:
        if operation.place[0] == ELLIPSIS:
            text = f"{self._bundles.left_out} more steps"
            column = len(self._bundles.steps) - 1
            identity = self._names.of(f"{group} steps")
            return Node(
                identity,
                group,
                "...",
                "",
                (),
                gradient,
                None,
                "...",
                "...",
                notes=(text,),
                column=column,
            )
        bundle = self._bundles.all[operation.place[0]]
        whole = operation.whole or operation.key == "values"
        label = bundle.title if whole else " ".join((*bundle.words, operation.key))
        steps = self._bundles.steps
        column = steps.index(bundle.step) if bundle.step in steps else -1
        column += column == len(steps) - 1 and self._bundles.left_out > 0
        notes = [*self._notes(operation)]
        if parameters:
            many = len(parameters)
            notes.append(f"+ {many} parameter{'s' if many > 1 else ''}")
        return Node(
            id=self._names.of(f"{bundle.title}.{operation.key}"),
            group=group,
            label=label,
            shape=self._bundles.shape(operation.place),
            values=(),
            gradient=gradient,
            record=bundle.entries[0].ordinal,
            key=operation.key,
            family=f"{bundle.kind}.{operation.key}",
            notes=(*notes,),
            column=column,
            covers=tuple(entry.ordinal for entry in bundle.entries),
            fields=tuple(one.key for one in (*operation.before, operation)),
            merged=tuple(
                f"{self._bundles.all[one.place[0]].kind}.{one.key}" for one in operation.before
            ),
        )

    def _notes(self, operation: Operation) -> Iterator[str]:
        """What is done: formulas, or only what occurs in them where these are long."""
        chain = [*operation.before, operation]
        if operation.whole:
            yield ", ".join(one.key for one in chain)
        elif operation.is_copy or not operation.formulas:
            yield from [*operation.apart, *(f"fixture {name}" for name in operation.fixture)][:1]
        else:
            texts = [brief(one.printed[-1]) for one in chain if one.printed]
            lines = [
                line
                for text in texts
                for line in wrap(text, WIDE, break_long_words=False, break_on_hyphens=False)
            ]
            if len(lines) <= _LINES and all(len(line) <= WIDE for line in lines):
                yield from texts
            elif any(map(str.isidentifier, done := _done(chain))):
                yield ", ".join(done)


def _done(chain: list[Operation]) -> dict[str, None]:
    """The functions and operators of a chain; terms with parameters that are added are `linear`."""
    found = dict.fromkeys(word for one in chain for word in words(one.formulas[-1]))
    if any(one.fixture and is_product(one.formulas[-1]) for one in chain[:-1]) and "+" in found:
        return dict.fromkeys(["linear", *(word for word in found if word not in ("*", "+", "@"))])
    return found

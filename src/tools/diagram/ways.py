"""The operations one way, from what a computation starts with to what comes out of it.

A field that copies another is no operation of its own, and operations of a record that follow each
other are drawn together, so that a figure has few nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..formulas.document import Cell
from ..formulas.evaluation import gradient_of
from .bundles import Bundles, Operation, Place
from .operations import is_linear, is_product, is_sum

BOOKKEEPING = ("ERROR", "FIXTURE", "GRADCHECK", "META", "PROOF")
ELLIPSIS = -1
"""The bundle of the steps that are left out."""


class Way:
    """Operations by place. Those that were drawn together with others are `moved` to these."""

    def __init__(self, bundles: Bundles) -> None:
        self.bundles = bundles
        self.operations: dict[Place, Operation] = {}
        self.moved: dict[Place, Place] = {}

    def now(self, place: Place) -> Place:
        """Where an operation is drawn."""
        while place in self.moved:
            place = self.moved[place]
        return place

    def add(self, place: Place) -> Operation | None:
        """An operation, with those that it uses in steps that are drawn."""
        found = self.bundles.operation(place)
        if place in self.operations or found is None:
            return None
        operation = replace(found, sources={}, before=[])
        self.operations[place] = operation
        for source, shifted in found.sources.items():
            if self.bundles.hidden(source):
                operation.sources[self._ellipsis(place, source)] = False
            else:
                operation.sources[source] = shifted
        return operation

    def _ellipsis(self, user: Place, hidden: Place) -> Place:
        """What stands for the steps between, after the same operation of a step that is drawn."""
        here = ELLIPSIS, ""
        between = self.operations.setdefault(here, Operation(here, "..."))
        if (before := self.bundles.beyond(user, hidden)) is not None:
            between.sources[before] = False
        return here

    def shorten(self) -> None:
        """Leave out copies, forget what comes from other steps, draw chains together."""
        for place, operation in [*self.operations.items()]:
            if operation.is_copy and [*operation.sources.values()].count(False):
                self._replace(place, operation.sources)
                if len(operation.sources) == 1:
                    self.moved[place] = next(iter(operation.sources))
                del self.operations[place]
        for operation in self.operations.values():
            operation.sources = {
                source: False
                for source, shifted in operation.sources.items()
                if not shifted and source in self.operations and source != operation.place
            }
        while any([*map(self._merge, self._pairs())]):
            pass

    def _replace(self, place: Place, sources: dict[Place, bool]) -> None:
        for user in self.operations.values():
            if place in user.sources:
                outer = user.sources.pop(place)
                for source, shifted in sources.items():
                    user.sources[source] = user.sources.get(source, True) and (outer or shifted)

    def _pairs(self) -> Iterator[tuple[Place, Place]]:
        """Operations of which one is used by the other alone, and may stand in one node with it."""
        users: dict[Place, list[Place]] = {}
        for place, operation in self.operations.items():
            for source in operation.sources:
                users.setdefault(source, []).append(place)
        for place, (user, *others) in [*users.items()]:
            if others or place[0] != user[0] or place[0] == ELLIPSIS:
                continue
            one, other = self.operations[place], self.operations[user]
            starts = not one.sources and (one.is_copy or not one.formulas)
            if not starts and not any(map(is_linear, other.formulas)):
                term = one.fixture and all(map(is_product, one.formulas)) and len(one.sources) < 2
                if len(other.sources) == 1 or (term and all(map(is_sum, other.formulas))):
                    yield place, user

    def _merge(self, pair: tuple[Place, Place]) -> bool:
        place, user = pair
        if place not in self.operations or user not in self.operations:
            return False  # one of them has been merged in this pass already
        one, other = self.operations.pop(place), self.operations[user]
        del other.sources[place]
        other.sources = {**one.sources, **other.sources}
        other.before = [*one.before, one, *other.before]
        self.moved[place] = user
        return True

    def by_record(self) -> None:
        """Draw the operations of a bundle together, as far as no node comes to use itself."""
        current: dict[int, Place] = {}
        for place in self._in_order():
            operation = self.operations[place]
            operation.whole = place[0] != ELLIPSIS
            operation.sources = dict.fromkeys(map(self.now, operation.sources), False)
            before = current.get(place[0])
            if before is not None:
                others = [source for source in operation.sources if source != before]
                if not self._reaches(others, before):
                    one = self.operations.pop(before)
                    operation.before = [*one.before, one, *operation.before]
                    operation.sources = {**one.sources, **dict.fromkeys(others, False)}
                    self.moved[before] = place
                    for user in self.operations.values():
                        if user.sources.pop(before, None) is not None:
                            user.sources[place] = False
            current[place[0]] = place

    def _in_order(self) -> list[Place]:
        """The operations, each behind those that it uses."""
        done: dict[Place, None] = {}
        for start in self.operations:
            stack = [(start, iter(self.operations[start].sources))]
            on_the_way = {start}
            while stack and start not in done:
                place, rest = stack[-1]
                following = next(
                    (one for one in rest if one not in done and one not in on_the_way), None
                )
                if following is None:
                    done[place] = None
                    stack.pop()
                else:
                    on_the_way.add(following)
                    stack.append((following, iter(self.operations[following].sources)))
        return [*done]

    def _reaches(self, places: list[Place], wanted: Place) -> bool:
        """Whether one of the places is worked out from another, through whatever others."""
        seen: set[Place] = set()
        waiting = [*places]
        while waiting:
            place = self.now(waiting.pop())
            if place == wanted:
                return True
            if place not in seen and place in self.operations:
                seen.add(place)
                waiting += self.operations[place].sources
        return False

    def sort(self) -> None:
        """Put the operations in the order in which the trace prints them."""
        bundles = self.bundles.all
        order = {
            (number, declared.attribute): (entry.ordinal, at)
            for number, bundle in enumerate(bundles)
            for entry in bundle.entries[:1]
            for at, declared in enumerate(entry.record.fields)
        }
        last = (len(self.bundles.document.entries), 0)
        places = sorted(self.operations, key=lambda place: order.get(place, last))
        self.operations = {place: self.operations[place] for place in places}


def way_there(bundles: Bundles, loss: str | None, kinds: Sequence[str] = ()) -> Way:
    """What the loss is worked out from, or all that is worked out, or that of some kinds."""
    way = Way(bundles)
    waiting = bundles.started(loss) if loss is not None and not kinds else []
    if not waiting:
        waiting = [
            place
            for place in bundles.places()
            if (bundles.is_kind(place, kinds) if kinds else _is_computed(bundles, place))
        ]
    while waiting:
        place = waiting.pop()
        if place[0] == ELLIPSIS or bundles.hidden(place):
            continue
        if kinds and not bundles.is_kind(place, kinds):
            continue
        if operation := way.add(place):
            waiting += operation.sources
            between = way.operations.get((ELLIPSIS, ""))
            waiting += between.sources if between else ()
    way.sort()
    return way


def _is_computed(bundles: Bundles, place: Place) -> bool:
    return not bundles.is_kind(place, BOOKKEEPING) and not bundles.declared(place).gradient_of


Parameters = dict[Place, list[str]]
"""The parameters whose gradients are made of an operation, by its place."""


def way_back(bundles: Bundles, there: Way) -> tuple[Way, Parameters]:
    """The gradients of what is on the way there, and those of parameters."""
    way = Way(bundles)
    known = {*there.operations, *there.moved}
    targets = _targets(bundles)
    kinds: dict[str, bool] = {}
    for place, found in targets.items():
        kind = bundles.all[place[0]].kind
        kinds[kind] = kinds.get(kind, False) or any(target in known for target in found)
    for place in targets:
        if kinds[bundles.all[place[0]].kind] and (operation := way.add(place)):
            operation.targets = [target for target in targets[place] if target in known]
    waiting = [*way.operations]
    while waiting:
        operation = way.operations[waiting.pop()]
        for source in [*operation.sources]:
            if source in known or source[0] == ELLIPSIS:
                continue
            if kinds.get(bundles.all[source[0]].kind) and way.add(source):
                waiting.append(source)
    _drop_what_uses_no_gradient(way, {*targets})
    parameters: Parameters = {}
    for place, found in targets.items():
        if not found and not kinds[bundles.all[place[0]].kind]:
            for source in (bundles.operation(place) or Operation(place, "")).sources:
                if source in way.operations:
                    parameters.setdefault(source, []).append(bundles.all[place[0]].title)
    way.sort()
    return way, parameters


def _targets(bundles: Bundles) -> dict[Place, list[Place]]:
    """Each gradient, and the operations that it is the gradient of: none for a parameter's."""
    found: dict[Place, list[Place]] = {}
    for number, bundle in enumerate(bundles.all):
        for declared in bundle.entries[0].record.fields:
            place = number, declared.attribute
            if (
                not declared.gradient_of
                or declared.loss
                or bundles.hidden(place)
                or not bundles.operation(place)
            ):
                continue
            for entry in bundles.examples(bundle):
                expression = gradient_of(Cell(bundles.document, entry, declared))
                if expression is not None:
                    asked = map(bundles.place, bundles.asking.used(expression, entry))
                    of = found.setdefault(place, [])
                    of += [one for one in asked if one is not None and one not in of]
    return found


def _drop_what_uses_no_gradient(way: Way, gradients: Iterable[Place]) -> None:
    """Leave out what stands beside gradients and is worked out from none of them."""
    kept = {*gradients}
    while True:
        more = {
            place
            for place, operation in way.operations.items()
            if place not in kept and any(source in kept for source in operation.sources)
        }
        if not more:
            break
        kept |= more
    way.operations = {
        place: operation
        for place, operation in way.operations.items()
        if place in kept or place[0] == ELLIPSIS
    }

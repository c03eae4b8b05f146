"""What one backward pass gave to whom, looked up by the nodes themselves."""

from collections import defaultdict
from itertools import chain

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import BackwardTrace, Tensor
from ..fixtures.errors import FixtureError

MAX_STEPS = 4096  # of a recurrence: each step records about a dozen nodes


class Tape:
    """Adjoints and contributions of a pass, each found in one step."""

    def __init__(self, backward: BackwardTrace) -> None:
        nodes = backward.nodes
        self.nodes, self.adjoints = nodes, backward.adjoints  # in the order of the pass
        self._adjoints = dict(zip(nodes, backward.adjoints, strict=True))
        self._given: dict[tuple[Tensor, Tensor], list[Array]] = defaultdict(list)
        for edge in backward.edges:
            self._given[nodes[edge.child], nodes[edge.parent]].append(edge.contribution)

    def adjoint(self, node: Tensor) -> Array:
        """d(output)/d(node). Raises KeyError where no gradient flows."""
        adjoint = self.find(node)
        if adjoint is None:
            raise KeyError(node)
        return adjoint

    def find(self, node: Tensor) -> Array | None:
        """The same, or none where no gradient flows."""
        return self._adjoints.get(node)

    @property
    def finite(self) -> bool:
        """Whether every value, every adjoint and every contribution is finite."""
        given = (array for arrays in self._given.values() for array in arrays)
        adjoints = (adjoint for adjoint in self.adjoints if adjoint is not None)
        every = chain((node.value for node in self.nodes), adjoints, given)
        return all(np.isfinite(array).all() for array in every)

    def contribution(self, child: Tensor, parent: Tensor) -> Array | None:
        """What the VJP of `child` gave its operand `parent`, if that edge was walked.

        Raises ValueError where the child has that operand twice.
        """
        given = self._given.get((child, parent))
        if given is None:
            return None
        (contribution,) = given
        return contribution


def require_steps(field: str, steps: int) -> None:
    """Refuse a sequence that is empty, or so long that its tape would not fit in memory."""
    if not 1 <= steps <= MAX_STEPS:
        raise FixtureError(field, f"from 1 to {MAX_STEPS} steps", str(steps))

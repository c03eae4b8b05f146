"""Giving up recorded operations, and finding out what has been given up.

Every operation asks whether anything it builds on was released. A counter of releases answers most
of these questions at once: what was found whole at the present count is still whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from .tensor import LEAVES, Tensor

_count = 0


def releases() -> int:
    """How many graphs have been released so far."""
    return _count


def release(nodes: Iterable[Tensor]) -> None:
    """Forget the operands of every node that is not a leaf; values and gradients stay readable."""
    global _count
    _count += 1
    for node in nodes:
        if node.operation not in LEAVES:
            node.parents, node.revisions, node.vjp = (), (), None
            node.released = True


def reaches_release(tensor: Tensor) -> bool:
    """Whether `tensor` or anything that it was computed from has been released."""
    if tensor.verified == _count:
        return False
    pending, whole = [tensor], set[Tensor]()
    while pending:
        node = pending.pop()
        if node.released:
            return True
        if node.verified != _count and node not in whole:
            whole.add(node)
            pending.extend(node.parents)
    for node in whole:
        node.verified = _count
    return False

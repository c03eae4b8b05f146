"""Lists that lie otherwise on one side, as a map says: brought to the other side's order."""

from collections.abc import Iterable, Sequence
from math import prod

from ...report.plain_values import shape_text
from ...report.shapes import spelled_extents
from ..maps import Layout


def laid_out(text: str, layout: Layout, shapes: Iterable[Sequence[int]]) -> str | None:
    """The values of the left side, from the text of the right; nothing where no shape fits."""
    import numpy as np

    items = text.split(",")
    for extents in (*shapes, (len(items),)):
        if prod(extents) == len(items):
            try:
                laid = layout.of(np.arange(len(items), dtype=np.float64).reshape(extents))
            except IndexError:
                continue
            places = np.ravel(laid).astype(np.intp)
            return ",".join(items[place] for place in places)
    return None


def shape_laid_out(text: str, layout: Layout) -> str | None:
    """The shape of the left side, from that of the right."""
    import numpy as np

    extents = spelled_extents(text)
    if extents is None or prod(extents) > np.iinfo(np.intp).max:
        return None
    try:
        return shape_text(np.shape(layout.of(np.broadcast_to(np.zeros(()), extents))))
    except IndexError:
        return None

"""Indices in brackets, as selections and slices of one axis after the other."""

from __future__ import annotations

from .errors import IndexOutOfBounds, WrongArgument
from .operators import described, entered, whole
from .shaping import select, slice_axis
from .tensor import Tensor


@entered("index")
def index(x: Tensor, at: object) -> Tensor:
    """x[at], where `at` holds whole numbers, slices without a step and at most one `...`.

    Negative numbers count from the end, and a slice ends where the axis does. Raises WrongArgument,
    then IndexOutOfBounds.
    """
    parts = _one_an_axis(at if isinstance(at, tuple) else (at,), len(x.shape))
    axis = 0
    for place, part in enumerate(parts):
        size = x.shape[axis]
        if isinstance(part, slice):
            if part.step not in (None, 1):
                raise _refused("slices without a step", f"the step {part.step}")
            for end in (part.start, part.stop):
                if end is not None:
                    whole("index", end)
            start, stop, _ = part.indices(size)
            if (start, stop) != (0, size):
                x = slice_axis(x, axis=axis, start=start, stop=max(start, stop))
            axis += 1
        else:
            number = whole("index", part)
            if not -size <= number < size:
                raise IndexOutOfBounds(index=number, axis=place, size=size)
            x = select(x, axis=axis, index=number % size)
    return x


def _one_an_axis(parts: tuple[object, ...], rank: int) -> tuple[object, ...]:
    """The same with `...` written out."""
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    given = len(parts) - len(dots)
    if len(dots) > 1:
        raise _refused("at most one ...", f"{len(dots)}")
    if given > rank:
        raise _refused(f"at most {rank} indices", f"{given}")
    for part in parts:
        if part is not Ellipsis and not isinstance(part, slice):
            _require_whole(part)
    at = dots[0] if dots else len(parts)
    return (*parts[:at], *(slice(None),) * (rank - given), *parts[at + 1 :])


def _require_whole(part: object) -> None:
    try:
        whole("index", part)
    except WrongArgument as error:
        raise _refused("whole numbers, slices and ...", described(part)) from error


def _refused(expected: str, found: str) -> WrongArgument:
    return WrongArgument(operation="index", expected=expected, found=found)

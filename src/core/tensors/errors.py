"""The errors of layouts, views and raw logits; those that a tape shares are `autodiff.errors`'."""

from ..autodiff.errors import ProbabilityError, ShapeError


class ShapeOverflow(ShapeError):
    """The extents multiply to more than 64 bits count."""

    message = "shape does not fit a row-major usize layout"


class DataLength(ShapeError):
    """A shape holds another number of elements."""

    message = "shape needs {expected} values, but data has {actual}"
    expected: int
    actual: int


class CoordinateRank(ShapeError):
    """A coordinate has one index an axis."""

    message = "coordinate rank {actual} does not match tensor rank {expected}"
    expected: int
    actual: int


class SliceStartAfterEnd(ShapeError):
    """A slice goes forward."""

    message = "slice start {start} is after end {end} on axis {axis}"
    axis: int
    start: int
    end: int


class SliceEndOutOfBounds(ShapeError):
    """A slice ends within its axis."""

    message = "slice end {end} is out of bounds for axis {axis} with size {size}"
    axis: int
    end: int
    size: int


class NonContiguousReshape(ShapeError):
    """No strides give the elements of this view in another shape."""

    message = "cannot reshape a non-row-major-contiguous view without materializing it"


class NonFiniteLogit(ProbabilityError):
    """Only finite logits have probabilities; `value` is a word."""

    message = "logit at group {group}, class {class_} is {value}"
    group: int
    class_: int
    value: str

"""What layers demand of shapes, of their parameters and of what they are given."""

from __future__ import annotations

from ..errors import ShapeMismatch

Shape = tuple[int, ...]


def require_shape(layer: str, part: str, found: Shape, expected: Shape) -> None:
    """Refuse another shape. Raises ShapeMismatch."""
    if found != expected:
        raise ShapeMismatch(layer=layer, part=part, expected=expected, found=found)


def require_matrix(layer: str, part: str, found: Shape) -> None:
    """Refuse what is no matrix, or one without a row or a column. Raises ShapeMismatch."""
    if len(found) != 2 or 0 in found:
        expected = "a matrix that is not empty"
        raise ShapeMismatch(layer=layer, part=part, expected=expected, found=found)


def require_width(layer: str, part: str, found: int, expected: int) -> None:
    """Refuse another number of features. Raises ShapeMismatch."""
    if found != expected:
        raise ShapeMismatch(layer=layer, part=part, expected=expected, found=found)


def require_features(layer: str, found: Shape, width: int, *axes: str) -> None:
    """Refuse an input whose last axis is not `width`, or that lacks the named axes before it.

    Raises ShapeMismatch.
    """
    if len(found) <= len(axes) or found[-1] != width:
        expected = f"shape {' x '.join(['...', *axes, str(width)])}"
        raise ShapeMismatch(layer=layer, part="input", expected=expected, found=found)

"""Phrases of the learner reports."""

from collections.abc import Iterator, Mapping

from ..core.arrays import Array
from .style import BARS, RUST
from .values import reals_text, shape_text


def tensor_line(label: str, array: Array) -> Iterator[str]:
    """`label: shape=2x3 values=…` with twelve digits, in pieces."""
    yield f"{label}: shape={shape_text(array.shape)} values="
    yield from reals_text(array, RUST.digits, RUST.empty)


def bracketed(label: str, array: Array) -> Iterator[str]:
    """`label=[…]` with six digits, in pieces."""
    yield f"{label}=["
    yield from reals_text(array, BARS.digits, BARS.empty)
    yield "]"


def bracketed_tensor(label: str, array: Array) -> Iterator[str]:
    """`label=shape:[2,3] values:[…]` with six digits, in pieces."""
    yield f"{label}=shape:{shape_text(array.shape, BARS)} values:["
    yield from reals_text(array, BARS.digits, BARS.empty)
    yield "]"


def flag(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def flags(answers: Mapping[str, bool], mark: str = "=") -> str:
    """`case=true other=false`."""
    return " ".join(f"{case}{mark}{flag(answer)}" for case, answer in answers.items())


def shape_list(shape: tuple[int, ...]) -> str:
    """`[2,3]`."""
    return shape_text(shape, BARS)


def integers(values: tuple[int, ...]) -> str:
    """`[1, 2]`."""
    return str(list(values))


def inline(array: Array) -> str:
    """A short list of reals with twelve digits."""
    return "".join(reals_text(array, RUST.digits, RUST.empty))

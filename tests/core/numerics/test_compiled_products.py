"""The compiled product on its own: no buffer and no size makes it touch what is not its."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.numerics import matmul

_products = pytest.importorskip("llm_trace.core.numerics._products", reason="not built")
multiply: Any = _products.multiply


def reals(*shape: int) -> NDArray[np.float64]:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


def unaligned(*shape: int) -> NDArray[np.float64]:
    size = int(np.prod(shape))
    array = np.frombuffer(bytearray(8 * size + 1), np.float64, size, 1).reshape(shape)
    array[...] = reals(*shape)
    return array


HUGE = 1 << 62


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 3, 5),  # another size of the output
        (1, 2, 4, 4),
        (2, 2, 3, 4),
        (0, 2, 3, 4),
        (-1, -2, 3, 4),
        (1, -2, -3, -4),
        (-1, 2, 3, 4),
        (HUGE, 2, 3, 4),
        (1, HUGE, 3, 4),
        (1, 2, HUGE, 4),
        (1, 2, 3, HUGE),
        (1 << 61, 8, 1, 1),  # 2 ** 64 values of 8 bytes, which 64 bits take for none
        (1 + (1 << 61), 2, 3, 4),  # whose size in bytes is right but for 2 ** 64
        (1, 2, 3 + (1 << 60), 4),
    ],
)
def test_sizes_that_are_not_the_buffers_are_refused(sizes: tuple[int, ...]) -> None:
    out = np.full((2, 4), 7.0)
    with pytest.raises(ValueError, match="sizes"):
        multiply(reals(2, 3), reals(3, 4), out, *sizes)
    assert (out == 7.0).all()


@pytest.mark.parametrize(
    "sizes",
    [
        (HUGE, 0, 0, 0),
        (0, HUGE, 0, 0),
        (0, 0, HUGE, 0),
        (0, HUGE, HUGE, HUGE),
        (HUGE, HUGE, 0, HUGE),
        (HUGE, 0, HUGE, HUGE),
        (HUGE, HUGE, HUGE, 0),
    ],
)
def test_empty_buffers_end_at_once_whatever_the_sizes(sizes: tuple[int, ...]) -> None:
    """Sizes that overflow are refused; others have nothing to do."""
    try:
        multiply(reals(0), reals(0), np.empty(0), *sizes)
    except ValueError as error:
        assert "sizes" in str(error)  # noqa: PT017


def test_an_empty_sum_is_zero() -> None:
    out = np.full((2, 3), 7.0)
    multiply(reals(2, 0), reals(0, 3), out, 1, 2, 0, 3)
    assert out.tobytes() == np.zeros((2, 3)).tobytes()


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    "other",
    [
        unaligned(2, 2),
        reals(2, 2).astype(np.float32).repeat(2),
        reals(2, 2).astype(">f8"),
        reals(2, 2).view(np.int64),
        reals(2, 2).view(np.complex128),
        bytearray(32),
        memoryview(bytearray(32)),
        reals(2, 4)[:, ::2],
        reals(2, 2).T,
        None,
        3.0,
        [1.0, 2.0, 3.0, 4.0],
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_other_values_are_refused_wherever_they_stand(place: int, other: Any) -> None:
    buffers: list[Any] = [reals(2, 2), reals(2, 2), np.full((2, 2), 7.0)]
    buffers[place] = other
    with pytest.raises((TypeError, ValueError, BufferError)):
        multiply(*buffers, 1, 2, 2, 2)
    if place != 2:
        assert (buffers[2] == 7.0).all()


def test_what_may_not_be_written_is_refused() -> None:
    out = np.full((2, 2), 7.0)
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        multiply(reals(2, 2), reals(2, 2), out, 1, 2, 2, 2)
    assert (out == 7.0).all()


@pytest.mark.parametrize("start", range(9))
def test_an_output_that_overlaps_an_operand_is_refused(start: int) -> None:
    memory = reals(12)
    apart = start in (0, 8)
    left, out = memory[4:8].reshape(2, 2), memory[start : start + 4].reshape(2, 2)
    before = memory.copy()
    for buffers in ((left, reals(2, 2), out), (reals(2, 2), left, out)):
        if apart:
            multiply(*buffers, 1, 2, 2, 2)
            memory[...] = before
        else:
            with pytest.raises(ValueError, match="overlaps"):
                multiply(*buffers, 1, 2, 2, 2)
            assert (memory == before).all()


@pytest.mark.parametrize("arguments", [(), (1,), (reals(1),) * 3, (reals(1),) * 8])
def test_other_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        multiply(*arguments)


def test_sizes_beyond_the_machine_are_refused() -> None:
    with pytest.raises(OverflowError):
        multiply(reals(1), reals(1), np.empty(1), 1 << 64, 1, 1, 1)


def test_refusals_keep_no_buffer() -> None:
    array = bytearray(8)
    values = memoryview(array).cast("d")
    for buffers in ((values, 3, 4), (values, values, 4), (values, values, values)):
        with pytest.raises((TypeError, ValueError)):
            multiply(*buffers, 1, 1, 1, 1)
    values.release()
    array.append(0)  # which an array that lends its memory does not do


def test_unaligned_and_scattered_arrays_are_multiplied_all_the_same() -> None:
    left, right = unaligned(5, 9), unaligned(9, 8)
    assert not left.flags.aligned
    expected = matmul(left.copy(), right.copy()).tobytes()
    assert matmul(left, right).tobytes() == expected
    assert matmul(np.asfortranarray(left), right[::-1][::-1]).tobytes() == expected

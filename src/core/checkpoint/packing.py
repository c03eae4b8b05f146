"""Numbers and texts in little-endian bytes, written in order and read with a bound."""

from __future__ import annotations

import struct

from ..errors import Mismatch


class InvalidCheckpoint(Mismatch):
    """Bytes that are no checkpoint, or that were changed."""


def refused(part: str, expected: object, found: object) -> InvalidCheckpoint:
    """What is to be raised for a part of the file."""
    return InvalidCheckpoint(layer="checkpoint", part=part, expected=expected, found=found)


def require(holds: bool, part: str, expected: object, found: object) -> None:
    """Raise InvalidCheckpoint unless it holds."""
    if not holds:
        raise refused(part, expected, found)


class Packer:
    """Bytes that grow."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, form: str, *values: int | float) -> None:
        """Numbers in the forms of `struct`, without padding."""
        self.data += struct.pack(f"<{form}", *values)

    def text(self, text: str) -> None:
        """The length of the UTF-8 bytes as u32, and the bytes."""
        data = text.encode("utf-8")
        self.put("I", len(data))
        self.data += data


class Unpacker:
    """Reads what a Packer wrote. Nothing is read, or kept, beyond the end of the bytes."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._at, self._end = start, end

    def take(self, form: str, part: str) -> tuple[int | float, ...]:
        """Numbers. Raises InvalidCheckpoint where the bytes end before."""
        layout = struct.Struct(f"<{form}")
        return layout.unpack(self._bytes(layout.size, part))

    def number(self, form: str, part: str) -> int:
        """One whole number."""
        return int(self.take(form, part)[0])

    def real(self, part: str) -> float:
        """One float64."""
        return float(self.take("d", part)[0])

    def text(self, part: str) -> str:
        """A text after its length. Raises InvalidCheckpoint for what is not UTF-8, too."""
        return self._text(self.number("I", part), part)

    def rest(self, part: str) -> str:
        """All that is left as a text. Raises InvalidCheckpoint for what is not UTF-8."""
        return self._text(self._end - self._at, part)

    def _text(self, length: int, part: str) -> str:
        data = self._bytes(length, part)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise refused(part, "UTF-8", f"another byte at {error.start}") from error

    def finish(self, part: str) -> None:
        """Refuse what is left. Raises InvalidCheckpoint."""
        require(self._at == self._end, part, "nothing more", f"{self._end - self._at} bytes")

    def _bytes(self, count: int, part: str) -> bytes:
        left = self._end - self._at
        require(count <= left, part, f"{count} bytes", f"{left} left")
        self._at += count
        return self._data[self._at - count : self._at]

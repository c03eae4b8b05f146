"""FNV-1a, a checksum that finds accidents and no attacks.

Source: Fowler, Noll and Vo, The FNV Non-Cryptographic Hash Algorithm (RFC 9923).
"""

FNV_START = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


def fnv1a64(data: bytes, state: int = FNV_START) -> int:
    """The checksum of the bytes that `state` is the checksum of, followed by `data`."""
    for byte in data:
        state = ((state ^ byte) * _PRIME) & _MASK
    return state


def labelled(checksum: int) -> str:
    """`fnv1a64:` and sixteen hexadecimal digits."""
    return f"fnv1a64:{checksum:016x}"

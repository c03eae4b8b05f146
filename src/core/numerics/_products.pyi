from typing_extensions import Buffer

def multiply(
    left: Buffer, right: Buffer, out: Buffer, count: int, n: int, inner: int, m: int, /
) -> None: ...

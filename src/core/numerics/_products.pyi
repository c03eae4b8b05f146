from ..arrays import Array

def multiply(
    left: Array, right: Array, out: Array, count: int, n: int, inner: int, m: int, /
) -> None: ...

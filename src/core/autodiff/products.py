"""The matrix product."""

from ..arrays import Array
from ..numerics import matmul as matmul_
from ..numerics import unbroadcast
from .elementwise import require_broadcast
from .errors import MatmulBatchMismatch, MatmulInnerMismatch, MatmulRank
from .operation import Forward, binary


@binary("matmul")
def matmul(left: Array, right: Array) -> Forward:
    """(..., n, k) times (..., k, m) -> (..., n, m), batch axes broadcast.

    A broadcast operand's adjoint is computed for the whole batch and added up over it afterwards.
    Raises MatmulRank, MatmulInnerMismatch, MatmulBatchMismatch, in this order.
    """
    _require_shapes(left.shape, right.shape)

    def vjp(g: Array) -> tuple[Array, Array]:
        to_left = matmul_(g, right.swapaxes(-1, -2))
        to_right = matmul_(left.swapaxes(-1, -2), g)
        return unbroadcast(to_left, left.shape), unbroadcast(to_right, right.shape)

    return matmul_(left, right), vjp


def _require_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for side, shape in (("left", left), ("right", right)):
        if len(shape) < 2:
            raise MatmulRank(side=side, rank=len(shape))
    if left[-1] != right[-2]:
        raise MatmulInnerMismatch(left=left[-1], right=right[-2])
    require_broadcast(left[:-2], right[:-2], MatmulBatchMismatch)

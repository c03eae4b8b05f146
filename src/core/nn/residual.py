"""The residual sum: a branch is added to what bypasses it.

Source: He et al. 2015, Deep Residual Learning for Image Recognition, eq. 1 (arXiv:1512.03385).
"""

from ..autodiff import Tensor, add
from .shapes import require_shape


def residual(identity: Tensor, branch: Tensor) -> Tensor:
    """identity + branch, both of one shape; nothing is broadcast. Raises ShapeMismatch."""
    require_shape("residual", "branch", branch.shape, identity.shape)
    return add(identity, branch)

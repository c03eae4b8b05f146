"""An image as a sequence: patches, projected, behind a class token, with learned positions.

Source: Dosovitskiy et al. 2021, An Image Is Worth 16x16 Words, section 3.1 (arXiv:2010.11929).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, add, concatenate, reshape, transpose
from ..errors import OutOfRange, ShapeMismatch
from .affine import affine
from .layer import Layer
from .parameters import NamedParameter


def cut_patches(image: Tensor, side: int) -> Tensor:
    """(height, width, channels) -> (patches, side * side * channels).

    Patches are taken row by row, and so are the pixels of each, channels last. Raises
    ShapeMismatch, OutOfRange.
    """
    if len(image.shape) != 3:
        expected = "shape height x width x channels"
        raise ShapeMismatch(layer="patch", part="image", expected=expected, found=image.shape)
    height, width, channels = image.shape
    if side < 1 or height % side or width % side:
        expected = f"a divisor of the image's height {height} and width {width}"
        raise OutOfRange(layer="patch", part="side", expected=expected, found=side)
    rows, columns = height // side, width // side
    blocks = reshape(image, shape=(rows, side, columns, side, channels))
    blocks = transpose(blocks, first_axis=1, second_axis=2)
    return reshape(blocks, shape=(rows * columns, side * side * channels))


class PatchPass(NamedTuple):
    """One forward pass, every intermediate by its name."""

    patches: Tensor  # (patches, side * side * channels)
    projected: Tensor  # (patches, model_width)
    tokens: Tensor  # (1 + patches, model_width), the class token first
    output: Tensor  # tokens + positions


@dataclass(frozen=True, eq=False)
class PatchEmbedding(Layer):
    """[class token; patches W^T] + positions, what the first encoder block of a ViT reads.

    Raises ShapeMismatch or DuplicateName.
    """

    side: int
    projection: NamedParameter  # W (model_width, side * side * channels)
    class_token: NamedParameter  # (model_width)
    positions: NamedParameter  # (1 + patches, model_width)

    def _check(self) -> None:
        weight = self.projection.tensor.shape
        if len(weight) != 2:
            self._refuse("projection", "model x patch features", weight)
        if self.class_token.tensor.shape != weight[:1]:
            self._refuse("class token", f"{weight[0]}", self.class_token.tensor.shape)
        positions = self.positions.tensor.shape
        if len(positions) != 2 or positions[1] != weight[0]:
            self._refuse("positions", f"tokens x {weight[0]}", positions)

    def __call__(self, image: Tensor) -> PatchPass:
        """(height, width, channels) -> (1 + patches, model_width).

        Raises ShapeMismatch, OutOfRange.
        """
        patches = cut_patches(image, self.side)
        weight, first = self.projection.tensor, self.class_token.tensor
        model, features = weight.shape
        if features != patches.shape[1]:
            self._refuse("projection", f"{model} x {patches.shape[1]}", weight.shape)
        if self.positions.tensor.shape[0] != 1 + patches.shape[0]:
            expected = f"{1 + patches.shape[0]} x {model}"
            self._refuse("positions", expected, self.positions.tensor.shape)
        projected = affine(patches, weight)
        tokens = concatenate([reshape(first, shape=(1, model)), projected], axis=0)
        return PatchPass(patches, projected, tokens, add(tokens, self.positions.tensor))

    @staticmethod
    def _refuse(part: str, expected: str, shape: tuple[int, ...]) -> None:
        raise ShapeMismatch(layer="patch", part=part, expected=f"shape {expected}", found=shape)

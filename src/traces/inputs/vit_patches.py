"""The image is cut into squares without overlap, each is written out row by row, and one projection
turns it into a row as wide as the model. A learned class token goes first and a learned position is
added to every row: what an encoder then reads looks like words. On the way back each pixel receives
the gradient of the one patch that it lies in, and the class token that of its row alone.

The pixels of the default image count in tenths from the upper left corner, so that a patch shows
where it was cut; the projection's four rows take the mean, the step from right to left, the step
from bottom to top, and the middle pixel.

Source: Dosovitskiy et al. 2021, An Image Is Worth 16x16 Words, section 3.1 (arXiv:2010.11929).
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import BackwardTrace, Tensor, parameter, trace_backward
from ...core.nn.parameters import named_parameter
from ...core.nn.patches import PatchEmbedding, PatchPass
from ...fixtures.fixture import Fixture, integer, prefix, reals, word
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Reals, Shape, Word
from .. import _proverb as proverb
from .._probes import gradient, same_bits
from .._rows import forward_rows

IMAGE = [[[(6 * row + column) / 10] for column in range(6)] for row in range(6)]
PROJECTION = [
    [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
    [-0.5, 0, 0.5, -0.5, 0, 0.5, -0.5, 0, 0.5],
    [-0.5, -0.5, -0.5, 0, 0, 0, 0.5, 0.5, 0.5],
    [0, 0, 0, 0, 1, 0, 0, 0, 0],
]
POSITIONS = [[(row + 1) * (column - 1) / 10 for column in range(4)] for row in range(5)]


class VitPatchesFixture(Fixture):
    """An image, how it is cut, and the three parameters that make rows of it."""

    computed = ("tokens model", "height width channels")

    name: str = word("six-by-six-image", "What the trace calls these numbers")
    parameter_prefix: str = prefix("vit", "What the parameters' names begin with")
    image: Array = reals(IMAGE, "height width channels", "The pixels")
    side: int = integer(3, "Pixels on a patch's side; divides the height and the width")
    projection_weight: Array = reals(
        PROJECTION, "model features", "W, out-by-in; it reads side * side * channels features"
    )
    class_token: Array = reals([0.5, -0.5, 0.25, 1], "model", "The first row of the sequence")
    positions: Array = reals(POSITIONS, "tokens model", "One row a token, the class token's first")
    upstream: Array = reals(
        proverb.upstream(5, 4), "tokens model", "dL/d output, the seed of the way back"
    )


class Computation(NamedTuple):
    """The embedding forward and backward."""

    embedding: PatchEmbedding
    image: Tensor
    forward: PatchPass
    backward: BackwardTrace


def compute(fixture: VitPatchesFixture) -> Computation:
    embedding, image = build(fixture), parameter(fixture.image)
    forward = embedding(image)
    return Computation(embedding, image, forward, trace_backward(forward.output, fixture.upstream))


def build(fixture: VitPatchesFixture) -> PatchEmbedding:
    name = fixture.parameter_prefix
    return PatchEmbedding(
        fixture.side,
        named_parameter(f"{name}.projection.weight", fixture.projection_weight),
        named_parameter(f"{name}.class_token", fixture.class_token),
        named_parameter(f"{name}.positions", fixture.positions),
    )


ModelRow = Annotated[Reals, "model_width"]
PatchRow = Annotated[Reals, "patch_features"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    image_shape: Shape = field("height x width x channels")
    side: Int = field("pixels on a patch's side")
    patches: Int = field(
        "squares that the image is cut into", "(image_shape[0] // side) * (image_shape[1] // side)"
    )
    patch_features: Int = field("pixels of a patch", "side * side * image_shape[2]")
    model_width: Int = field("features of a row, D")
    tokens: Int = field("rows of the sequence: the class token and the patches", "1 + patches")
    parameter_count: Int = field(
        "scalars in projection, class token and positions",
        "(patch_features + 1 + tokens) * model_width",
    )
    sequence_shape: Shape = field("tokens x model-width")
    restored: Flag = field("whether the patches, put back in place, are the image, bit for bit")


class ImageRow(Record):
    """One row of pixels."""

    row: Int = key("0-based, from the top")
    pixels: Reals = field("width * channels values, channels last", "fixture.image[row]")


class Patch(Record):
    """One square of the image, and its projection."""

    patch: Int = key("0-based, row by row")
    top: Int = field("the row of its first pixel")
    left: Int = field("the column of its first pixel")
    features: PatchRow = field(
        "its pixels row by row, channels last",
        "reshape(ImageRow.pixels, *image_shape)[top : top + side, left : left + side]",
    )
    projected: ModelRow = field(
        "what the model sees of it", "features @ fixture.projection_weight.T"
    )


class SequenceRow(Record):
    """One row of what the encoder reads."""

    token: Int = key("0-based; 0 is the class token")
    patch: Int | None = field("the patch it comes from, none for the class token")
    embedding: ModelRow = field(
        "the class token, or the projected patch",
        {"token == 0": "fixture.class_token", "": "Patch.projected"},
    )
    position: ModelRow = field("the learned vector of this place", "fixture.positions[token]")
    output: ModelRow = field("what the encoder reads", "embedding + position")


class RowBackward(Record):
    """One row on the way back; a sum hands its gradient to both addends."""

    token: Int = key("0-based; 0 is the class token")
    patch: Int | None = field("the patch it comes from, none for the class token")
    upstream: ModelRow = field(
        "dL/d output = dL/d embedding = dL/d position",
        "fixture.upstream[token]",
        gradient_of="SequenceRow.output",
    )
    patch_gradient: PatchRow | None = field(
        "dL/d features, none for the class token",
        {"token > 0": "upstream @ fixture.projection_weight"},
        gradient_of={"token > 0": "Patch.features"},
    )


class ImageRowBackward(Record):
    """The gradient of one row of pixels."""

    row: Int = key("0-based, from the top")
    gradient: Reals = field(
        "dL/d pixels, each from the one patch that holds it",
        (
            "reshape(RowBackward.patch_gradient, image_shape[0] // side, image_shape[1] // side,"
            " side, side, image_shape[2])[row // side, :, row % side]"
        ),
        gradient_of="ImageRow.pixels",
    )


class ParameterGradient(Record):
    """The gradient of one parameter."""

    name: Word = key("the parameter's dotted name")
    shape: Shape = field("its shape; the projection's is outputs x inputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/d parameter, row-major",
        {
            "name.endswith('.projection.weight')": "RowBackward.upstream[1:].T @ Patch.features",
            "name.endswith('.class_token')": "RowBackward(token=0).upstream",
            "name.endswith('.positions')": "RowBackward.upstream",
        },
        gradient_of={
            "name.endswith('.projection.weight')": "fixture.projection_weight",
            "name.endswith('.class_token')": "fixture.class_token",
            "name.endswith('.positions')": "fixture.positions",
        },
    )


def corners(run: Computation) -> Iterator[tuple[int, int]]:
    """The upper left pixel of every patch, row by row."""
    height, width, _ = run.image.shape
    side = run.embedding.side
    for top in range(0, height, side):
        for left in range(0, width, side):
            yield top, left


def restored(run: Computation) -> Array:
    """An image of the patches, each put where it was cut."""
    side, channels = run.embedding.side, run.image.shape[2]
    image = np.zeros(run.image.shape)
    for patch, (top, left) in zip(run.forward.patches.value, corners(run), strict=True):
        image[top : top + side, left : left + side] = patch.reshape(side, side, channels)
    return image


@trace(
    "vit-patches",
    version=1,
    source="Week 6",
    shows="an image becomes a sequence of patches",
    fixture=VitPatchesFixture,
    loss="dot(fixture.upstream, SequenceRow.output)",
)
def vit_patches_trace(
    fixture: VitPatchesFixture,
) -> Iterator[
    FixtureRecord
    | ImageRow
    | Patch
    | SequenceRow
    | RowBackward
    | ImageRowBackward
    | ParameterGradient
]:
    run = compute(fixture)
    forward, backward = run.forward, run.backward
    yield FixtureRecord(
        name=fixture.name,
        image_shape=run.image.shape,
        side=fixture.side,
        patches=forward.patches.shape[0],
        patch_features=forward.patches.shape[1],
        model_width=forward.output.shape[1],
        tokens=forward.output.shape[0],
        parameter_count=run.embedding.parameter_count,
        sequence_shape=forward.output.shape,
        restored=same_bits(restored(run), run.image.value),
    )
    for row, pixels in enumerate(run.image.value):
        yield ImageRow(row=row, pixels=pixels)
    corner = {"top": [top for top, _ in corners(run)], "left": [left for _, left in corners(run)]}
    yield from forward_rows(
        Patch, {**corner, "features": forward.patches, "projected": forward.projected}
    )
    patch_of = [None, *range(len(forward.patches.value))]
    rows = {"patch": patch_of, "embedding": forward.tokens, "position": fixture.positions}
    yield from forward_rows(SequenceRow, {**rows, "output": forward.output})
    gradients = {
        "upstream": backward.adjoint(forward.output),
        "patch_gradient": [None, *backward.adjoint(forward.patches)],
    }
    yield from forward_rows(RowBackward, {"patch": patch_of, **gradients})
    for row, pixels in enumerate(backward.adjoint(run.image)):
        yield ImageRowBackward(row=row, gradient=pixels)
    for name, value in run.embedding.parameters:
        yield ParameterGradient(name=name, shape=value.shape, values=gradient(value))

"""Patches: what is cut where, what is read, and where the gradient of a pixel comes from."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import constant, transpose
from llm_trace.core.errors import OutOfRange, ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.nn import patches as layer
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.inputs.vit_patches import (
    FixtureRecord,
    ImageRowBackward,
    ParameterGradient,
    Patch,
    RowBackward,
    SequenceRow,
    VitPatchesFixture,
    build,
    compute,
)

from ...known import stated
from ..proverb_data import of, records

COMMAND = "vit-patches"


def test_sizes_are_the_chapters() -> None:
    expected = stated("vit_example")
    (sizes,) = of(FixtureRecord, records(COMMAND))
    assert sizes.image_shape == tuple(expected[f"{axis}_img"] for axis in "HWC")
    assert sizes.side == expected["p"]
    assert sizes.patches == expected["N_patch"]
    assert sizes.patch_features == expected["patch_features"]
    assert sizes.model_width == expected["D"]
    assert sizes.tokens == expected["T_with_class_token"]


def test_each_patch_holds_the_pixels_of_its_square() -> None:
    fixture = VitPatchesFixture()
    found = of(Patch, records(COMMAND))
    assert [(r.top, r.left) for r in found] == [(0, 0), (0, 3), (3, 0), (3, 3)]
    for patch in found:
        square = fixture.image[patch.top : patch.top + 3, patch.left : patch.left + 3]
        assert patch.features.tolist() == square.reshape(-1).tolist()
        projected = fixture.projection_weight @ patch.features
        assert patch.projected == pytest.approx(projected, abs=1e-15)


def test_the_class_token_goes_first_and_every_row_has_its_position() -> None:
    fixture = VitPatchesFixture()
    first, *others = of(SequenceRow, records(COMMAND))
    assert first.patch is None
    assert first.embedding.tolist() == fixture.class_token.tolist()
    assert [row.patch for row in others] == [0, 1, 2, 3]
    for row in (first, *others):
        assert row.position.tolist() == fixture.positions[row.token].tolist()
        assert row.output.tolist() == (row.embedding + row.position).tolist()


NAMES = ("projection_weight", "class_token", "positions", "image")


@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_difference_quotients(name: str) -> None:
    fixture = VitPatchesFixture()
    run = compute(fixture)
    leaves = [tensor for _, tensor in run.embedding.parameters]
    leaf = [*leaves, run.image][NAMES.index(name)]

    def objective(values: Array) -> float:
        changed = fixture.replace(**{name: values})
        output = build(changed)(constant(changed.image)).output
        return float((output.value * fixture.upstream).sum())

    analytic = run.backward.adjoint(leaf)
    report = check_gradient(
        objective, leaf.value, analytic, step=1e-6, tolerance=1e-8, max_samples=40
    )
    assert report.passed


def test_the_way_back_puts_gradients_where_pixels_were_cut() -> None:
    found = records(COMMAND)
    image = np.array([record.gradient for record in of(ImageRowBackward, found)])[..., 0]
    for row in of(RowBackward, found)[1:]:
        top, left = divmod(row.token - 1, 2)
        square = image[3 * top : 3 * top + 3, 3 * left : 3 * left + 3]
        assert row.patch_gradient is not None
        assert row.patch_gradient.tolist() == square.reshape(-1).tolist()
    gradients = {record.name: record.values for record in of(ParameterGradient, found)}
    upstream = VitPatchesFixture().upstream
    assert gradients["vit.class_token"].tolist() == upstream[0].tolist()
    assert gradients["vit.positions"].tolist() == upstream.tolist()


def test_channels_and_a_wide_image() -> None:
    image = np.arange(2.0 * 6 * 3).reshape(2, 6, 3)
    found = records(
        COMMAND,
        image=image,
        side=2,
        projection_weight=np.ones((2, 12)),
        class_token=np.zeros(2),
        positions=np.zeros((4, 2)),
        upstream=np.ones((4, 2)),
    )
    patches = of(Patch, found)
    assert [(r.top, r.left) for r in patches] == [(0, 0), (0, 2), (0, 4)]
    assert patches[1].features.tolist() == image[:, 2:4].reshape(-1).tolist()
    (sizes,) = of(FixtureRecord, found)
    assert sizes.restored
    assert (sizes.patches, sizes.patch_features, sizes.tokens) == (3, 12, 4)


def test_pixels_that_are_misplaced_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(x: Any, *, first_axis: int, second_axis: int) -> Any:
        if (first_axis, second_axis) == (1, 2):
            return x
        return transpose(x, first_axis=first_axis, second_axis=second_axis)

    monkeypatch.setattr(layer, "transpose", idle)
    (sizes,) = of(FixtureRecord, records(COMMAND))
    assert not sizes.restored


def test_wrong_fixtures_end_in_one_line() -> None:
    with pytest.raises(
        OutOfRange,
        match="a divisor of the image's height 6 and width 6, found 4",
    ):
        records(COMMAND, side=4)
    with pytest.raises(ShapeMismatch, match="projection: expected shape 4 x 4"):
        records(COMMAND, side=2)
    with pytest.raises(ShapeMismatch, match="positions: expected shape 10 x 4"):
        records(COMMAND, side=2, projection_weight=np.ones((4, 4)))
    with pytest.raises(FixtureError, match="class_token: expected shape model=4, found 3"):
        VitPatchesFixture(class_token=np.ones(3))
    with pytest.raises(FixtureError, match="image: expected shape height x width x channels"):
        VitPatchesFixture(image=np.ones((6, 6)))


def test_an_image_without_pixels_leaves_the_class_token() -> None:
    found = records(
        COMMAND,
        image=np.zeros((0, 6, 1)),
        positions=np.zeros((1, 4)),
        upstream=np.ones((1, 4)),
    )
    assert of(FixtureRecord, found)[0].patches == 0
    assert len(of(SequenceRow, found)) == 1

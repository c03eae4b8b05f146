"""How syrupy keeps golden files: one file a trace and form, exactly the program's bytes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from syrupy.extensions.single_file import SingleFileSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SerializedData, SnapshotIndex

from llm_trace.report.outputs import FORMS

GOLDEN = Path(__file__).parent.parent / "golden"


class GoldenFile(SingleFileSnapshotExtension):
    """`golden/NAME.EXTENSION`, where NAME is what the snapshot is called."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(GOLDEN)

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        return str(index)

    def diff_lines(
        self, serialized_data: SerializedData, snapshot_data: SerializedData
    ) -> Iterator[str]:
        """The lines that differ, as text, and how to accept them."""
        yield from super().diff_lines(_text(serialized_data), _text(snapshot_data))
        yield "If this is intended: `make golden`, and commit the difference."


def _text(data: SerializedData) -> str:
    return data.decode() if isinstance(data, bytes) else data


EXTENSIONS: Mapping[str, type[GoldenFile]] = {
    name: type(GoldenFile.__name__, (GoldenFile,), {"file_extension": name}) for name in FORMS
}
"""What keeps the golden files of each of a trace's forms."""


class Drawing(GoldenFile):
    """A drawing, which is no golden file of the program: `data/drawings/NAME.FORM`."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(__file__).parent / "data" / "drawings")


class MermaidFile(Drawing):
    """For a forge."""

    file_extension = "mermaid"


class DotFile(Drawing):
    """For Graphviz."""

    file_extension = "dot"


class SvgFile(Drawing):
    """For a document."""

    file_extension = "svg"


class TikzFile(Drawing):
    """For LaTeX."""

    file_extension = "tikz"


class JsonFile(Drawing):
    """For programs that draw."""

    file_extension = "json"


class FixtureFile(GoldenFile):
    """The numbers of a golden file that are not the default ones."""

    file_extension = "toml"

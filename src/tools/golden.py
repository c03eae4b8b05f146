"""A folder of golden files: which there are, and what each is a trace of. Knows no trace."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from ..errors import Unexpected
from ..escaping import bounded, printable
from ..report.lines import TraceError
from ..report.outputs import FORMS, Form
from ..report.reading import fixtures_beside, opened
from .diff.sources import Source

ENDINGS = {form.ending: form for form in FORMS.values()}
FOLDER = "a folder of golden files such as swiglu.trace"


class CheckError(Unexpected):
    """A folder, a name or a golden file that cannot be used."""

    def __init__(self, place: str, expected: str, found: str) -> None:
        super().__init__(printable(place), expected, found)


class Golden(NamedTuple):
    """One golden file, by the parts of its name."""

    folder: str
    stem: str
    ending: str

    @property
    def path(self) -> str:
        """Where it is."""
        return os.path.join(self.folder, self.stem + self.ending)

    @property
    def form(self) -> Form:
        """Which of a trace's forms it holds."""
        return ENDINGS[self.ending]

    def fixture(self) -> str | None:
        """The file of numbers beside it, if there is one. Raises CheckError for several."""
        found = fixtures_beside(self.path)
        if len(found) > 1:
            names = " and ".join(printable(os.path.basename(name)) for name in found)
            raise CheckError(self.path, "one fixture beside it", names)
        return found[0] if found else None

    def framed(self) -> str | None:
        """The name in the first frame of this file or of one beside it, if one has a frame.

        Raises InputError; a first line that is none of a trace has no frame.
        """
        for form in (self.form, *FORMS.values()):
            path = os.path.join(self.folder, self.stem + form.ending)
            if form.of_records and os.path.exists(path) and (name := _first_frame(path)):
                return name
        return None


def golden_files(folder: str) -> list[Golden]:
    """The golden files of a folder, in the order of their names. Raises CheckError."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise CheckError(folder, FOLDER, (error.strerror or str(error)).lower()) from error
    except ValueError as error:  # a NUL in the name
        raise CheckError(folder, FOLDER, "a name with a NUL") from error
    parts = map(os.path.splitext, names)
    return [Golden(folder, stem, ending) for stem, ending in parts if ending in ENDINGS]


def unknown_name(name: str, known: Iterable[str]) -> CheckError:
    """What to say of a name that is neither a trace nor a golden file."""
    near = get_close_matches(name.lower(), known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return CheckError(bounded(name), "a trace or a golden file", f"neither{hint}")


def _first_frame(path: str) -> str | None:
    with opened(path) as lines:
        try:
            first = Source(path, [*islice(lines, 1)], None, True)
            return next((section.name for section in first.sections()), None) or None
        except TraceError:
            return None

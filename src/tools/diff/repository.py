"""Files as a git repository has them: of one commit, or those that differ between two."""

import os
import re
import subprocess
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

from ...errors import Unexpected
from ...escaping import printable, shown
from ...report.lines import TraceLines
from .sources import Source

_RANGE = re.compile(r"(?P<base>[^:]*?)(?P<dots>\.{2,3})(?P<head>[^:.][^:]*)?")
_REGULAR = ("100644", "100755")
_LARGEST = 67_000_000  # bytes of a file
_NOTHING = "0" * 40


class RepositoryError(Unexpected):
    """A commit or file that a repository does not have."""


class Blob(NamedTuple):
    """The content of a file in a commit."""

    name: str  # as it is called in messages
    digest: str

    def content(self) -> bytes:
        """What is in it. Raises RepositoryError."""
        size = int(_git("cat-file", "-s", self.digest))
        if size > _LARGEST:
            expected = f"at most {_LARGEST} bytes to compare"
            raise RepositoryError(printable(self.name), expected, str(size))
        return _git("cat-file", "blob", self.digest)

    def source(self) -> Source:
        """The lines of a trace. Raises RepositoryError, TraceError."""
        return Source.of(TraceLines(self.name, BytesIO(self.content())))


class Difference(NamedTuple):
    """A file that is not the same in two commits; one side is missing where it is new or gone."""

    path: str
    old: Blob | None
    new: Blob | None


def is_range(text: str) -> bool:
    """Whether an argument is two commits: `BASE..HEAD`, or `BASE...HEAD` from where they part."""
    if os.path.lexists(text) or text.startswith(("../", "./", "/", "-")) or text == "..":
        return False
    if "/../" in text or text.endswith("/.."):
        return False
    return _RANGE.fullmatch(text) is not None


def is_of_commit(text: str) -> bool:
    """Whether an argument is a file of a commit, `REV:path`."""
    rev, mark, path = text.partition(":")
    return bool(rev and mark and path) and not os.path.lexists(text) and not rev.startswith("-")


def blob(text: str) -> Blob:
    """The file `REV:path`. Raises RepositoryError."""
    rev, _, path = text.partition(":")
    for spelled in (text, f"{rev}:./{path}"):
        try:
            digest = _git("rev-parse", "--verify", "--quiet", "--end-of-options", spelled)
        except RepositoryError:
            continue
        return Blob(text, digest.decode().strip())
    _commit(rev)
    raise RepositoryError(printable(text), "a file of that commit", "none")


def differences(text: str, paths: Sequence[str]) -> list[Difference]:
    """The files that differ between the commits of a range. Raises RepositoryError."""
    found = _RANGE.fullmatch(text)
    assert found is not None
    base, head = (_commit(found[side] or "HEAD") for side in ("base", "head"))
    if found["dots"] == "...":
        base = _git("merge-base", base, head).decode().strip()
    options = ("--raw", "-z", "--no-abbrev", "--find-renames", "--no-ext-diff")
    raw = _git("diff", *options, base, head, "--", *paths)
    words = iter(os.fsdecode(raw).split("\0"))
    listed = []
    for word in words:
        if not word:
            break
        old_mode, new_mode, old, new, how = word.lstrip(":").split(" ")
        path = next(words)
        new_path = next(words) if how[0] in "RC" else path
        if {old_mode, new_mode} & {*_REGULAR}:
            sides = ((old_mode, old, path, base), (new_mode, new, new_path, head))
            listed.append(Difference(new_path, *(_side(*side) for side in sides)))
    return listed


def _side(mode: str, digest: str, path: str, commit: str) -> Blob | None:
    there = mode in _REGULAR and digest.strip("0")
    return Blob(f"{commit[:10]}:{path}", digest) if there else None


def _commit(rev: str) -> str:
    """The digest of a commit. Raises RepositoryError."""
    spelled = f"{rev}^{{commit}}"
    try:
        found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", spelled)
    except RepositoryError as error:
        raise RepositoryError(printable(rev), "a commit of this repository", "none") from error
    return found.decode().strip()


def _git(*arguments: str) -> bytes:
    """What git prints. Raises RepositoryError."""
    try:
        done = subprocess.run(("git", *arguments), capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise RepositoryError("git", "a program that runs", shown(str(error))) from error
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        found = message[-1] if message else f"status {done.returncode}"
        raise RepositoryError(f"git {arguments[0]}", "an answer", shown(found))
    return done.stdout

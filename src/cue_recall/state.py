"""Stored training: the memories of all runs in one .npz file, and nothing that is not theirs.

A state says whose it is and carries a digest of itself, so that what has been changed on the way
is refused and never gone on with.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..core.arrays import Array
from ..core.nn.adam import AdamState
from ..errors import Unexpected
from ..escaping import printable
from ..fixtures.archives import read_archive
from ..fixtures.errors import FixtureError, quoted_key
from ..fixtures.fixture import MAX_VALUES
from ..report.files import write_bytes
from .training import Epoch, Plan, Progress, Run

FORMAT = 3  # raised when the file is laid out otherwise, or trainings come to other bits

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

_TYPES = {
    "format": "<i8",
    "training": "|u1",  # SHA-256 of what decides every bit
    "epochs": "<i8",  # of each run
    "order_states": "<u8",
    "powers": "<f8",  # of Adam's decays, two a run
    "history": "<f8",  # a row an epoch, run by run
    "values": "<f8",  # rows: parameters, first moments, second moments, checkpoint; run by run
    "digest": "|u1",  # SHA-256 of all the others
}


class StateError(Unexpected):
    """A state that is not there, not readable, or of another training."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(printable(path), expected, found)


class StateFile:
    """A place to keep training in, written whole or not at all."""

    def __init__(self, path: str, every: float = 10.0) -> None:
        self.path = path
        self.every = every  # seconds
        self.saved_at = time.monotonic()
        self.kept: int | None = None  # epochs of this training that are stored
        self.latest: tuple[Plan, Mapping[Run, Progress]] | None = None  # what is being trained

    def refuse_existing(self) -> None:
        """Protect an earlier training. Raises StateError."""
        if os.path.lexists(self.path):
            raise StateError(self.path, "--resume, or no state of an earlier training", "one")

    def save_at_times(self, plan: Plan, memories: Mapping[Run, Progress]) -> None:
        """Store the memories if the last time was long ago."""
        if time.monotonic() - self.saved_at >= self.every:
            self.save(plan, memories)

    def save_latest(self) -> None:
        """Store what is being trained, unless it is stored. Raises OutputError."""
        if self.latest and self.kept != epochs_of(self.latest[1]):
            self.save(*self.latest)

    def save(self, plan: Plan, memories: Mapping[Run, Progress]) -> None:
        """Store the memories. Raises OutputError."""
        arrays = stored(plan, memories)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays, digest=own_digest(arrays))  # type: ignore[arg-type]
        write_bytes(self.path, [buffer.getvalue()])
        self.saved_at = time.monotonic()
        self.kept = epochs_of(memories)

    def load(self, plan: Plan, fresh: Mapping[Run, Progress]) -> dict[Run, Progress]:
        """The stored memories of the runs, `fresh` before their first epoch. Raises StateError."""
        total = plan.epochs * len(fresh)
        width = sum(memory.values.size for memory in fresh.values())  # of integers
        # Room for what this training can hold, and for another's state to be told as such.
        most = max(4 * width, len(Epoch._fields) * total, MAX_VALUES)
        try:
            arrays = read_archive(self.path, self._require_name, most=most, in_all=2 * most)
        except FixtureError as error:
            if error.field == "file":
                raise StateError(self.path, "a state to resume", error.found) from error
            expected = f"{error.field} as {error.expected} in a state to resume"
            raise StateError(self.path, expected, error.found) from error
        self._require_training(arrays, training_digest(plan, fresh))
        self._require_shapes(arrays, plan, len(fresh), width)
        memories = dict(zip(fresh, restored(arrays, fresh.values()), strict=True))
        self.kept = epochs_of(memories)
        return memories

    def remove(self) -> None:
        """Forget what is stored; nothing happens if nothing is."""
        Path(self.path).unlink(missing_ok=True)

    def _require_name(self, name: str) -> None:
        if name not in _TYPES:
            raise StateError(self.path, "a state to resume", f"an array called {quoted_key(name)}")

    def _require_training(self, arrays: Arrays, training: np.ndarray[Any, Any]) -> None:
        """Refuse what is no state, of another format, changed, or another training's."""
        for name, dtype in _TYPES.items():
            if name not in arrays:
                raise StateError(self.path, "a state to resume", f"no array called {name}")
            if arrays[name].dtype != np.dtype(dtype):
                found = f"dtype {arrays[name].dtype}"
                raise StateError(self.path, f"{name} of dtype {np.dtype(dtype)}", found)
        if not np.array_equal(arrays["format"], FORMAT):
            raise StateError(self.path, f"a state of format {FORMAT}", "another")
        given = arrays.pop("digest")
        if not np.array_equal(own_digest(arrays), given):
            raise StateError(self.path, "a state with the digest of what it holds", "another's")
        if not np.array_equal(arrays["training"], training):
            raise StateError(self.path, "the state of this very training", "another's")

    def _require_shapes(self, arrays: Arrays, plan: Plan, runs: int, width: int) -> None:
        """Refuse arrays that no training of this plan leaves, whoever gave them a digest."""
        epochs = arrays["epochs"]
        possible = epochs.shape == (runs,) and ((epochs >= 0) & (epochs <= plan.epochs)).all()
        total = sum(epochs.tolist()) if possible else -1  # of integers
        shapes = {
            "order_states": (runs,),
            "powers": (runs, 2),
            "history": (total, len(Epoch._fields)),
            "values": (4, width),
        }
        possible = possible and all(
            arrays[name].shape == shape and np.isfinite(arrays[name]).all()
            for name, shape in shapes.items()
        )
        powers, history = arrays["powers"], arrays["history"]
        batches = -(-plan.train // plan.batch)
        if (
            not possible
            or not ((powers > 0.0) | (powers == 0.0)).all()
            or not (powers <= 1.0).all()
            or not np.isin(history[:, 2], np.arange(batches + 1)).all()
            or (arrays["values"][2] < 0.0).any()
        ):
            raise StateError(self.path, "numbers that a training can come to", "others")


def stored(plan: Plan, memories: Mapping[Run, Progress]) -> Arrays:
    """The memories as arrays, all but the digest."""
    all_of = [*memories.values()]
    history = [epoch for memory in all_of for epoch in memory.history]
    rows = zip(
        *((m.values, m.adam.first, m.adam.second, m.best_values) for m in all_of), strict=True
    )
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "training": training_digest(plan, memories),
        "epochs": [memory.epochs for memory in all_of],
        "order_states": [memory.order_state for memory in all_of],
        "powers": [(memory.adam.first_power, memory.adam.second_power) for memory in all_of],
        "history": np.array(history, dtype=np.float64).reshape(-1, len(Epoch._fields)),
        "values": [np.concatenate(row) for row in rows],
    }
    return {name: np.array(array, dtype=_TYPES[name]) for name, array in arrays.items()}


def restored(arrays: Arrays, fresh: Iterable[Progress]) -> Iterable[Progress]:
    """Each run's memory, cut out of arrays of the right shapes."""
    column = row = 0
    for number, memory in enumerate(fresh):
        width, epochs = memory.values.size, int(arrays["epochs"][number])
        values, first, second, best = (
            np.array(part, dtype=np.float64)
            for part in arrays["values"][:, column : column + width]
        )
        history = history_of(arrays["history"][row : row + epochs])
        validations = [epoch.validation for epoch in history]
        yield Progress(
            values=values,
            adam=AdamState(first, second, *map(float, arrays["powers"][number])),
            order_state=int(arrays["order_states"][number]),
            best_values=best,
            best_epoch=validations.index(min(validations)) + 1 if validations else 0,
            history=history,
        )
        column, row = column + width, row + epochs


def history_of(rows: Array) -> tuple[Epoch, ...]:
    """Epochs from their rows."""
    return tuple(
        Epoch(loss, norm, int(clipped), validation)
        for loss, norm, clipped, validation in rows.tolist()
    )


def epochs_of(memories: Mapping[Run, Progress]) -> int:
    """Of all runs together."""
    return sum(memory.epochs for memory in memories.values())  # of integers


def training_digest(plan: Plan, runs: Iterable[Run]) -> np.ndarray[Any, Any]:
    """What tells trainings apart: everything that decides their bits."""
    return sha256(repr((FORMAT, plan, [*runs])).encode())


def own_digest(arrays: Arrays) -> np.ndarray[Any, Any]:
    """What tells that an array is another: names, types, shapes and bytes."""
    parts = []
    for name in sorted(arrays):
        array = arrays[name]
        parts += [f"{name} {array.dtype.str} {array.shape}\n".encode(), array.tobytes()]
    return sha256(b"".join(parts))


def sha256(data: bytes) -> np.ndarray[Any, Any]:
    """The 32 bytes of the digest."""
    return np.frombuffer(hashlib.sha256(data).digest(), dtype=np.uint8)

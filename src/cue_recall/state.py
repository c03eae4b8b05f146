"""Stored training: the memories of all runs in one .npz file, and nothing that is not theirs."""

import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.nn.adam import AdamState
from ..errors import Unexpected
from ..report.files import write_bytes
from .training import Epoch, Memory, Plan, Run

FORMAT = 1
_ARRAYS = ("values", "first", "second", "best_values")


class StateError(Unexpected):
    """A state that is not there, not readable, or of another training."""


class StateFile:
    """A place to keep training in, written whole or not at all."""

    def __init__(self, path: str, every: float = 10.0) -> None:
        self.path = path
        self.every = every  # seconds
        self.saved_at = time.monotonic()
        self.holds = False  # anything of this training

    def refuse_existing(self) -> None:
        """Protect an earlier training. Raises StateError."""
        if os.path.lexists(self.path):
            raise StateError(self.path, "--resume, or no state of an earlier training", "one")

    def save_at_times(self, plan: Plan, memories: Mapping[Run, Memory]) -> None:
        """Store the memories if the last time was long ago."""
        if time.monotonic() - self.saved_at >= self.every:
            self.save(plan, memories)

    def save(self, plan: Plan, memories: Mapping[Run, Memory]) -> None:
        """Store the memories. Raises OutputError."""
        arrays: dict[str, Array] = {}
        for number, memory in enumerate(memories.values()):
            adam = memory.adam
            stored = (memory.values, adam.first, adam.second, memory.best_values)
            arrays |= {f"{number}.{key}": a for key, a in zip(_ARRAYS, stored, strict=True)}
        header = {
            "format": FORMAT,
            "training": digest(plan, memories),
            "runs": [
                {
                    "powers": [memory.adam.first_power, memory.adam.second_power],
                    "order_state": memory.order_state,
                    "best_epoch": memory.best_epoch,
                    "history": memory.history,
                }
                for memory in memories.values()
            ],
        }
        members: dict[str, Any] = {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            **arrays,
        }
        buffer = io.BytesIO()
        np.savez(buffer, **members)
        write_bytes(self.path, [buffer.getvalue()])
        self.saved_at = time.monotonic()
        self.holds = True

    def load(self, plan: Plan, runs: Iterable[Run]) -> dict[Run, Memory]:
        """The stored memories of these runs. Raises StateError."""
        runs = [*runs]
        try:
            with Path(self.path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(bytes(archive["header"]))
                if header["format"] != FORMAT or header["training"] != digest(plan, runs):
                    raise StateError(self.path, "the state of this very training", "another's")
                numbered = zip(range(len(runs)), header["runs"], strict=True)
                memories = [
                    memory_of(facts, *(archive[f"{number}.{key}"] for key in _ARRAYS))
                    for number, facts in numbered
                ]
        except StateError:
            raise
        except OSError as error:
            found = (error.strerror or str(error)).lower()
            raise StateError(self.path, "a state to resume", found) from error
        except Exception as error:  # zipfile, numpy and json raise a dozen types for a broken file
            raise StateError(self.path, "a state to resume", "something else") from error
        self.holds = True
        return dict(zip(runs, memories, strict=True))

    def remove(self) -> None:
        """Forget what is stored; nothing happens if nothing is."""
        Path(self.path).unlink(missing_ok=True)


def memory_of(
    facts: dict[str, Any], values: Array, first: Array, second: Array, best: Array
) -> Memory:
    """One run's memory from the header and its arrays. Raises ValueError if they disagree."""
    if not values.shape == first.shape == second.shape == best.shape or values.ndim != 1:
        raise ValueError("arrays of one run that differ in shape")
    first_power, second_power = map(float, facts["powers"])
    return Memory(
        values=values,
        adam=AdamState(first, second, first_power, second_power),
        order_state=int(facts["order_state"]),
        best_values=best,
        best_epoch=int(facts["best_epoch"]),
        history=tuple(Epoch(*epoch) for epoch in facts["history"]),
    )


def digest(plan: Plan, runs: Iterable[Run]) -> str:
    """What tells trainings apart: everything that decides their bits."""
    return hashlib.sha256(repr((FORMAT, plan, [*runs])).encode()).hexdigest()

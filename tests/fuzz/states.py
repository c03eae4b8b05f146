"""States of trainings: an honest one in the middle, and what is changed in it."""

import functools

import numpy as np
from hypothesis import strategies as st

from llm_trace.cue_recall.state import own_digest, stored
from llm_trace.cue_recall.training import advance, start
from llm_trace.traces.training.cue_recall import CueRecallFixture

from . import archives
from .running import Case

NUMBERS = {
    "model": "rnn",
    "delays": (2,),
    "seeds": (1, 2),
    "train": 8,
    "validation": 4,
    "test": 4,
    "epochs": 2,
    "embedding_width": 2,
    "rnn_width": 2,
}
FIXTURE = "\n".join(
    f"{name} = {[*value] if isinstance(value, tuple) else repr(value)}"
    for name, value in NUMBERS.items()
)
TOLD = np.array([-1, 0, 1, 3, 2**31, 2**62, -(2**63)])
RESUME = ("cue-recall", "--fixture", "mine.toml", "--quiet", "--resume", "--state", "mine.state")


@functools.cache
def honest() -> dict[str, np.ndarray]:
    """The arrays of a training some of whose epochs are done, all but the digest."""
    fixture = CueRecallFixture(**NUMBERS)
    fresh = {run: start(fixture.plan, run) for run in fixture.runs}
    return stored(
        fixture.plan,
        {
            run: advance(fixture.plan, run, memory, at % 3)
            for at, (run, memory) in enumerate(fresh.items())
        },
    )


@st.composite
def states(draw: st.DrawFn) -> bytes:
    """A state whose arrays are changed and may have the digest of that, or whose bytes are."""
    arrays = {name: array.copy() for name, array in honest().items()}
    name = draw(st.sampled_from([*arrays]))
    array = arrays[name].reshape(-1)
    match draw(st.sampled_from(["none", "none", "number", "shape", "type", "dropped", "added"])):
        case "number" if array.dtype.kind == "f":
            array[draw(st.integers(0, array.size - 1))] = draw(st.floats())
            arrays[name] = array.reshape(arrays[name].shape)
        case "number":
            number = TOLD.astype(array.dtype)[draw(st.integers(0, TOLD.size - 1))]
            array[draw(st.integers(0, array.size - 1))] = number
            arrays[name] = array.reshape(arrays[name].shape)
        case "shape":
            cut = array[: draw(st.integers(0, array.size))]
            arrays[name] = cut[None] if draw(st.booleans()) else cut
        case "type":
            other = draw(st.sampled_from("f8 f4 >f8 i8 u8 i2 ? c16 U3 S3 M8[s] V4".split()))
            arrays[name] = np.zeros(arrays[name].shape).astype(other)
        case "dropped":
            del arrays[name]
        case "added":
            arrays[draw(st.sampled_from(["header", "x/y", ""]))] = array
    digest = draw(st.sampled_from([own_digest(arrays)] * 3 + [own_digest(honest()), np.zeros(32)]))
    members = [(f"{key}.npy", archives.npy(value)) for key, value in arrays.items()]
    members.append(("digest.npy", archives.npy(digest)))
    if draw(st.booleans()):
        return archives.archive_of(members)
    return draw(archives.damaged(members))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A training that is to go on with one of them."""
    jobs = draw(st.sampled_from([(), (), (), ("--jobs", "2")]))
    return Case((*RESUME, *jobs), {"mine.toml": FIXTURE.encode(), "mine.state": draw(states())})

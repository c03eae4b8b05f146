"""The same of programs that autograd leads back, in float64, float32 and bfloat16."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest

from llm_trace.tools.emit.program import LANGUAGES

from .pytorch import PORTS, START
from .pytorch_mistakes import MADE, Made
from .running import FOLDER, plan, quarter
from .test_ports import is_first, judgement
from .writing import filled

if find_spec("torch") is None:
    pytest.skip("no PyTorch here", allow_module_level=True)

DTYPES = ("float64", "float32", "bfloat16")
ALL = """
import contextlib, io, json, sys
sources, wanted = json.load(open(sys.argv[1]))
printed = []
for trace, dtype, bug in wanted:
    source = sources[trace].replace("DTYPE = torch.float64", f"DTYPE = torch.{dtype}")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        exec(compile(source, trace, "exec"), {"bug": bug})
    printed.append(text.getvalue())
json.dump(printed, sys.stdout)
"""


def source(trace: str) -> str:
    """The emitted program with a port in it."""
    names = {put.values for groups in plan(trace).kinds for one in groups for put in one.puts}
    assigned = re.compile(r"\w+(?=[\w, ]*=(?!=))")
    mine = names & {*assigned.findall(PORTS[trace]), *re.findall(r'said\(f?"(\w+)"', PORTS[trace])}
    if trace in ("gru", "lstm"):
        said = re.findall(r'said\("(\w+)"', PORTS[trace])
        gates = ("input", "forget", "candidate", "output") if trace == "lstm" else ()
        every = [*said, *(f"{gate}_pre" for gate in gates)]
        mine |= names & {*every, *(f"{name}_gradient" for name in every)}
    return filled(LANGUAGES["pytorch"], plan(trace), trace, START + PORTS[trace], mine)


@cache
def printed() -> dict[tuple[str, str, str], str]:
    """What every port prints, right and with every mistake, of one process."""
    wanted = [
        *((trace, dtype, "") for trace in PORTS for dtype in DTYPES),
        *((made.trace, dtype, made.bug) for made in MADE for dtype in DTYPES[:2]),
    ]
    file = FOLDER / "pytorch.json"
    file.write_text(json.dumps([{trace: source(trace) for trace in PORTS}, wanted]))
    done = subprocess.run(
        [sys.executable, "-c", ALL, str(file)], stdout=subprocess.PIPE, timeout=300, check=False
    )
    return dict(zip(wanted, json.loads(done.stdout) if done.stdout else [], strict=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trace", PORTS)
def test_a_right_port_is_blamed_for_nothing(trace: str, dtype: str) -> None:
    text = printed()[trace, dtype, ""]
    for told in (text, quarter(text)):
        assert judgement(trace, told, dtype).guilty == frozenset()


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("made", MADE, ids=lambda made: f"{made.trace}-{made.bug}")
def test_a_mistake_is_named_and_nothing_else(made: Made, dtype: str) -> None:
    found = judgement(made.trace, printed()[made.trace, dtype, made.bug], dtype)
    assert found.guilty == {made.first, *made.also.split()}
    assert is_first(found.first, made.first)
    assert made.name in found.hypotheses

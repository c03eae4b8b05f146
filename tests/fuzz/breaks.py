"""Cases that once ended in a traceback, a hang or too much memory, each of a kind of its own."""

import functools
import re

from . import archives, growth
from .running import PIPE, Case, Content
from .tool_cases import golden

HUGE = "x".join(["999999999999999999"] * 240)
DEEP = 24_000


def replaced(name: str, pattern: str, by: str) -> bytes:
    """An honest trace with one value changed."""
    return re.sub(pattern, by, golden(name).decode(), count=1).encode()


def traced(text: str) -> bytes:
    return (text if text.endswith("\n") else f"{text}\n").encode()


def grown(name: str, count: int) -> bytes:
    return traced(growth.TEXTS[name](count))


def file(arguments: str, content: Content, name: str = "a.trace") -> Case:
    return Case(tuple(arguments.split()), {name: content})


QUERY = replaced("attention-head.trace", r"(QUERY-BACKWARD query=)[0-9]+", r"\g<1>999999999")
SHAPED = (
    growth.BEGIN + f'{{"record":"A","shape":"{HUGE}","values":{{"value":[1.0],"text":"1.0"}}}}\n'
)
BROAD = b"""input = { shape = [2, 200], uniform = 1 }
gate_weight = { shape = [200, 200], xavier = 2 }
up_weight = { shape = [200, 200], xavier = 3 }
down_weight = { shape = [200, 200], xavier = 4 }
upstream = { shape = [2, 200], uniform = 5 }
"""


def nested(last: str) -> bytes:
    return traced("A b=" + "[1," * DEEP + last + "]" * DEEP)


def by_hand() -> dict[str, Case]:
    """Each of them, by name."""
    index = f"POSITION-FORWARD[position=0].gated[{'9' * 5000}]"
    state = "cue-recall --small --quiet --resume --state a.trace"
    width = functools.partial(
        replaced, "encoder-block.trace", "model-width=[0-9]+", "model-width=30000000"
    )
    number = QUERY.decode().splitlines()
    place = 1 + next(at for at, text in enumerate(number) if "query=999999999" in text)
    cases = {
        "an index of 5000 digits": Case(("explain", "swiglu", "--at", index)),
        "a shape of 240 extents": file(
            "validate a.trace", traced(f"A shape={HUGE} values=1.0,2.0")
        ),
        "the same as JSON": file("validate a.trace", traced(SHAPED + growth.END)),
        "a key out of range": file(f"explain a.trace:{place}", QUERY),
        "a shape of 100000 extents": file(
            "validate a.trace", lambda: grown("large extents", 100_000)
        ),
        "brackets in brackets": Case(
            ("diff", "a.trace", "b.trace"), {"a.trace": nested("1"), "b.trace": nested("2")}
        ),
        "digits and a letter": file(
            "diagram a.trace --to html", lambda: grown("digits and a letter", 20_000)
        ),
        "20000 references": file("diagram a.trace", lambda: grown("references to itself", 20_000)),
        "3000 kinds in a chain": file(
            "diagram a.trace --to svg", lambda: grown("kinds in a chain", 3_000)
        ),
        "a label of 8 MB": file("diagram a.trace --to svg", lambda: grown("a label", 8_000_000)),
        "2000 equal fields": file(
            "diagram a.trace --to html",
            lambda: traced(("A " + " ".join(f"k{i}=x" for i in range(2000)) + "\n") * 120),
        ),
        "60000 names, one twice": file(
            "swiglu --fixture a.json",
            lambda: f"{{{growth.OBJECTS['keys and one twice'](60_000)}}}".encode(),
            "a.json",
        ),
        "a quoted dotted key": file(
            "swiglu --fixture a.toml", lambda: b".".join([b"''"] * 40_000) + b"=1", "a.toml"
        ),
        "80000 members": file(
            "swiglu --fixture a.npz", archives.ARCHIVES["80000 members of one name"], "a.npz"
        ),
        "a bzip2 bomb": file("swiglu --fixture a.npz", archives.ARCHIVES["a bzip2 bomb"], "a.npz"),
        "a Python 2 header": file("swiglu --fixture a.npz", archives.ARCHIVES["Python 2"], "a.npz"),
        "a width of 30 million": file("diagram a.trace", width),
        "95 MB and an emoji": file("validate a.trace", lambda: grown("a wide string", 95_000_000)),
        "zeros without end": Case(("render", "/dev/zero")),
        "a state that is a pipe": file(state, PIPE),
        "a state that is a bomb": file(state, archives.ARCHIVES["a bzip2 bomb"]),
        "a state that is text": file(state, b"hello"),
        "U+FFFE": file("diagram a.trace --to svg", traced("A name=\ufffe values=1.0,2.0")),
    }
    return {f"broke once: {name}": case for name, case in cases.items()}

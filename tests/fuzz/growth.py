"""Texts of a few kinds that grow: whatever takes more than linear time or memory shows in them."""

import functools
from collections.abc import Callable

from hypothesis import strategies as st

from .running import Case, Content

SIZE = 2_000_000  # bytes, at most

TEXTS: dict[str, Callable[[int], str]] = {
    "digits": lambda n: "A b=" + "1" * n,
    "digits and a letter": lambda n: "A b=" + "1" * n + "x",
    "points": lambda n: "A b=" + "1." * n,
    "exponents": lambda n: "A b=" + "1e" * n,
    "minus signs": lambda n: "A b=" + "-" * n + "1",
    "commas": lambda n: "A b=" + "," * n,
    "integers": lambda n: "A b=" + "1," * n + "1",
    "reals": lambda n: "A b=" + "1.5," * n + "1.5",
    "words": lambda n: "A b=" + "a," * n + "a",
    "other items": lambda n: "A b=" + "a,1,1.5," * n + "a",
    "bars": lambda n: "A b=" + "1.5*2.5|" * n + "1.5*2.5",
    "semicolons": lambda n: "A b=" + "1.5;2.5:" * n + "1",
    "nested brackets": lambda n: "A b=" + "[1," * n + "1" + "]" * n,
    "open brackets": lambda n: "A b=" + "[" * n,
    "closed brackets": lambda n: "A b=" + "]" * n,
    "empty brackets": lambda n: "A b=" + "[]" * n,
    "bracketed items": lambda n: "A b=[" + "[1.5]," * n + "[1.5]]",
    "bracketed spaces": lambda n: "A|b=[" + "1.5, " * n + "1.5]",
    "a string": lambda n: 'A b="' + "x" * n + '"',
    "a string of escapes": lambda n: 'A b="' + "\\u0041" * n + '"',
    "an open string": lambda n: 'A b="' + '\\"' * n,
    "a wide string": lambda n: "A b=" + "x" * n + "\U0001f600",
    "quotes": lambda n: "A b=a" + '"' * n,
    "a kind": lambda n: "A" * n + " b=1",
    "a dashed kind": lambda n: "A" + "-A" * n + " b=1",
    "a key": lambda n: "A " + "b" * n + "=1",
    "a dashed key": lambda n: "A " + "b-b." * n + "b=1",
    "a label": lambda n: "A name=" + "x" * n,
    "extents": lambda n: "A shape=" + "2x" * n + "2 values=1.0,2.0",
    "large extents": lambda n: "A shape=" + "999999999999999999x" * n + "2 values=1.0,2.0",
    "fields": lambda n: "A " + " ".join(f"k{i}=x" for i in range(n)),
    "words alone": lambda n: "A " + " ".join(f"w{i}" for i in range(n)),
    "fields in lines": lambda n: ("A " + " ".join(f"k{i}=x" for i in range(n // 50)) + "\n") * 50,
    "numbers in lines": lambda n: (
        ("A " + " ".join(f"k{i}=1.5" for i in range(n // 50)) + "\n") * 50
    ),
    "equal lines": lambda n: "A b=1.5\n" * n,
    "other lines": lambda n: "".join(f"A b={i} c=1.5\n" for i in range(n)),
    "lines without fields": lambda n: "A\n" * n,
    "kinds": lambda n: "".join(f"A{i} b=1\n" for i in range(n)),
    "kinds in a chain": lambda n: "".join(f"A{i} name=a{i} source=a{i - 1}\n" for i in range(n)),
    "names in a chain": lambda n: "".join(f"A name=a{i} source=a{i - 1}\n" for i in range(n)),
    "a chain from the end": lambda n: "".join(f"A name=a{i} source=a{i + 1}\n" for i in range(n)),
    "references to itself": lambda n: "A name=a source=a\n" * n,
    "references to one": lambda n: (
        "B name=a\n" + "".join(f"A name=b{i} source=a\n" for i in range(n))
    ),
    "references of one": lambda n: "A sources=" + ",".join(f"a{i}" for i in range(n)),
    "references to all": lambda n: "".join(
        f"A name=a{i} sources={','.join(f'a{j}' for j in range(max(0, i - 30), i)) or 'z'}\n"
        for i in range(n // 30)
    ),
    "equal labels": lambda n: "A name=x-y\nA name=x.y\n" * n,
    "traces": lambda n: "TRACE a-v1 BEGIN\nA b=1\nTRACE a-v1 END\n" * n,
    "traces of other names": lambda n: "".join(
        f"TRACE a{i}-v1 BEGIN\nA b=1\nTRACE a{i}-v1 END\n" for i in range(n)
    ),
    "begins": lambda n: "TRACE a-v1 BEGIN\n" * n,
    "carriage returns": lambda n: "A b=1\r\n" * n,
    "spaces": lambda n: "A b=1" + " " * n,
    "equal signs": lambda n: "A b" + "=" * n,
}
OBJECTS: dict[str, Callable[[int], str]] = {
    "integers": lambda n: '"b":[' + "1," * n + "1]",
    "reals": lambda n: '"b":[' + "1.5," * n + "1.5]",
    "strings": lambda n: '"b":[' + '"ab",' * n + '"ab"]',
    "lists": lambda n: '"b":[' + "[]," * n + "[]]",
    "objects": lambda n: '"b":[' + "{}," * n + "{}]",
    "nested lists": lambda n: '"b":' + "[" * n + "]" * n,
    "nested objects": lambda n: '"b":' + '{"a":' * n + "1" + "}" * n,
    "keys": lambda n: ",".join(f'"k{i}":1' for i in range(n)),
    "keys and one twice": lambda n: ",".join(f'"k{i}":1' for i in range(n)) + ',"k0":1',
    "keys of an object": lambda n: '"b":{' + ",".join(f'"k{i}":1' for i in range(n)) + ',"k0":1}',
    "words alone": lambda n: ",".join(f'"{i}":"w"' for i in range(n, 0, -1)),
    "digits": lambda n: '"b":' + "9" * n,
    "digits of a real": lambda n: '"b":0.' + "9" * n,
    "a string": lambda n: '"b":"' + "x" * n + '"',
    "escapes": lambda n: '"b":"' + "\\u0041" * n + '"',
    "wide escapes": lambda n: '"b":"' + "\\ud83d\\ude00" * n + '"',
    "values and text": lambda n: (
        '"b":{"value":[' + "1.5," * n + '1.5],"text":"' + "1.5," * n + '1.5"}'
    ),
    "other values and text": lambda n: '"b":{"value":[' + "1.5," * n + '1.5],"text":"1.5"}',
    "extents": lambda n: '"shape":[' + "9," * n + '9],"values":{"value":[1.0],"text":"1.0"}',
    "spaces": lambda n: '"b":' + " " * n + "1",
}
BEGIN = '{"record":"TRACE","name":null,"event":"begin","separator":" "}\n'
END = '{"record":"TRACE","name":null,"event":"end"}\n'
TOOLS: tuple[tuple[str, ...], ...] = (
    ("parse", "a.trace", "-o", "old.trace"),
    ("render", "a.trace", "-o", "new.trace"),
    ("validate", "a.trace"),
    ("validate", "--format", "json", "a.trace"),
    ("diff", "a.trace", "b.trace"),
    ("diff", "--format", "json", "--atol", "1e-9", "a.trace", "b.trace"),
    ("diff", "--format", "markdown", "b.trace", "a.trace"),
    ("diagram", "a.trace"),
    ("diagram", "a.trace", "--to", "dot"),
    ("diagram", "a.trace", "--to", "svg", "-o", "old.trace"),
    ("diagram", "a.trace", "--to", "html", "-o", "new.html"),
    ("show", "a.trace"),
    ("show", "a.trace", "--wide"),
    ("blame", "swiglu", "a.trace"),
    ("validate", "--numbers", "a.trace"),
    ("explain", "a.trace:1"),
    ("explain", "a.trace", "--at", "A.b[0]"),
)


def text(name: str, length: int) -> bytes:
    """So many bytes of a kind, about."""
    made, unit = TEXTS[name], len(TEXTS[name](1000)) / 1000
    told = made(max(1, int(length / unit)))
    return (told if told.endswith("\n") else f"{told}\n").encode()


def line(name: str, length: int) -> bytes:
    """The same as JSON Lines of one record."""
    made, unit = OBJECTS[name], len(OBJECTS[name](1000)) / 1000
    told = made(max(1, int(length / unit)))
    return f'{BEGIN}{{"record":"A",{told}}}\n{END}'.encode()


def other(content: bytes) -> bytes:
    """The same with its last digit or letter changed, so that a comparison has to look."""
    for old, new in ((b"1", b"2"), (b"x", b"y"), (b"a", b"b")):
        at = content.rfind(old)
        if at > 0:
            return content[:at] + new + content[at + 1 :]
    return content


def case(tool: tuple[str, ...], made: Callable[[], bytes]) -> Case:
    files: dict[str, Content] = {"a.trace": made, "b.trace": lambda: other(made())}
    return Case(tool, files)


def by_hand(length: int = SIZE) -> dict[str, Case]:
    """Every kind at its largest to every tool."""
    kinds = {f"{name}, text": functools.partial(text, name, length) for name in TEXTS}
    kinds |= {f"{name}, JSON": functools.partial(line, name, length) for name in OBJECTS}
    return {
        f"grown: {' '.join(tool)}: {name}": case(tool, made)
        for name, made in kinds.items()
        for tool in TOOLS
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Some kind at some length to some tool."""
    length = draw(st.integers(1, SIZE))
    if draw(st.booleans()):
        made = functools.partial(text, draw(st.sampled_from([*TEXTS])), length)
    else:
        made = functools.partial(line, draw(st.sampled_from([*OBJECTS])), length)
    return case(draw(st.sampled_from(TOOLS)), made)

"""Deterministic text traces of how the building blocks of language models compute.

    import llm_trace

    trace = llm_trace.run("swiglu", gate_weight=[[-1, 0, 2], [0, 1, -1]])
    trace["POSITION-FORWARD", 0].gated  # an array
    print(trace.text())

`traces` lists them, `read` reads a file and `diff` compares two; `llm_trace.autodiff` and
`llm_trace.nn` are for programs of your own. Everything is loaded when it is asked for, so that
this import costs nothing. What is named in `__all__` here and in the two modules is public and
stable; everything else may change with any release.
"""

from typing import TYPE_CHECKING

if __name__ != "llm_trace":  # `import src` works from the repository root and would load all twice
    raise ImportError(f"import this package as 'llm_trace', not {__name__!r}")

if TYPE_CHECKING:
    from . import autodiff, nn
    from .api import Difference, diff, read, run
    from .errors import LlmTraceError
    from .records import NoSuchRecord, Records, Row

    def traces() -> dict[str, str]:
        """Every trace by name, and what it shows."""


__all__ = [
    "Difference",
    "LlmTraceError",
    "NoSuchRecord",
    "Records",
    "Row",
    "__version__",
    "autodiff",
    "diff",
    "nn",
    "read",
    "run",
    "traces",
]
__version__ = "0.1.0"
_HOMES = {
    "Difference": "api",
    "LlmTraceError": "errors",
    "NoSuchRecord": "records",
    "Records": "records",
    "Row": "records",
    "diff": "api",
    "read": "api",
    "run": "api",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in ("autodiff", "nn", "traces"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

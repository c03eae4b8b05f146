"""Deterministic text traces of how the building blocks of language models compute.

`llm_trace.autodiff` and `llm_trace.nn` are for programs of your own; they are loaded when they are
asked for.
"""

if __name__ != "llm_trace":  # `import src` works from the repository root and would load all twice
    raise ImportError(f"import this package as 'llm_trace', not {__name__!r}")

__version__ = "0.1.0"
_PUBLIC = ("autodiff", "nn")


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])

"""Deterministic text traces of how the building blocks of language models compute."""

if __name__ != "llm_trace":  # `import src` works from the repository root and would load all twice
    raise ImportError(f"import this package as 'llm_trace', not {__name__!r}")

__version__ = "0.1.0"

"""`python -m llm_trace` is `llm-trace`."""

from .cli import main

if __name__ == "__main__":
    main()

"""`python -m llm_trace` is `llm-trace`.

Signals are settled before anything else is imported, so that Ctrl-C ends a start quietly too.
"""

import os


def main() -> None:
    """Run the program."""
    try:
        from .interruption import end_quietly_on_signals

        end_quietly_on_signals()
    except KeyboardInterrupt:
        os._exit(130)

    from .cli import main

    main()


if __name__ == "__main__":
    main()

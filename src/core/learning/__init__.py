"""Training language models, choosing among their states, and judging one of them once."""

"""Choosing the next token, texts token by token, and caches of what was computed before."""

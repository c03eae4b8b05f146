"""Ports of traces to other languages, right ones and ones with a mistake planted."""

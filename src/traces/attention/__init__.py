"""Attention: who looks at whom, in one head and in several, and what it costs."""

"""Whose fault it is: every number of a port against what its own operands give."""

"""Source of a program that prints records of a trace: its fixture, and places for values."""

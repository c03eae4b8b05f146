"""A trace laid out for people, on a terminal of any width."""

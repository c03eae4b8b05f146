"""Hostile input: cases made by hypothesis and by hand, run in processes that are watched."""

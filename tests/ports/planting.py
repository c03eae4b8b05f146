"""A mistake that is planted in a port: what is computed instead, and what is wrong then."""

from typing import NamedTuple


class Planted(NamedTuple):
    """One mistake of a port."""

    trace: str
    called: str
    instead: dict[str, str]  # by the list that is computed in another way
    guilty: set[str]  # KIND.field
    name: str = ""  # of the hypothesis


def planted(trace: str, called: str, guilty: str, name: str = "", **instead: str) -> Planted:
    return Planted(trace, called, instead, {*guilty.split()}, name)

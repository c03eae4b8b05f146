"""A trace's records for programs: by kind and place, with arrays of their declared shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from .core.numerics.digits import shortest
from .errors import Unexpected, one_of

_SHOWN = 6  # numbers of a list


class NoSuchRecord(Unexpected, LookupError):
    """A kind, a place or a field that a trace does not have."""


class Row:
    """One record: its kind, which is called `record`, and its values, as attributes and by key.

    `row.gate_silu` and `row["gate-silu"]` are the same. Reals are float64 arrays of the shape that
    the trace declares, or flat ones; single reals are floats; what is absent is None. Iteration
    gives the keys in their order.
    """

    def __init__(self, record: str, values: Mapping[str, Any]) -> None:
        self.record = record
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._values[key]
        except KeyError:
            self._refuse(key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        key = name.rstrip("_").replace("_", "-")
        if key not in self._values:
            raise AttributeError(f"{self.record} has no field {key}; it has {', '.join(self)}")
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(key.replace("-", "_") for key in self)])

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={_abridged(value)}" for key, value in self._values.items())
        return f"<{self.record} {fields}>" if fields else f"<{self.record}>"

    def _refuse(self, key: object) -> NoReturn:
        expected, hint = one_of(str(key), self)
        raise NoSuchRecord(self.record, expected, repr(key), hint)


class Records(Sequence[Row]):
    """The records of one trace in their order.

    `records[0]` is the first of all, `records["POSITION-FORWARD"]` are those of a kind, and
    `records["POSITION-FORWARD", 0]` is the first of these. `find` looks them up by their values.
    """

    def __init__(
        self,
        name: str,
        rows: Sequence[Row],
        text: Callable[[], Iterator[str]],
        json_lines: Callable[[], Iterator[str]],
    ) -> None:
        self.name = name  # such as swiglu-feed-forward-v1, "" for lines without a frame
        self._rows = rows
        self._text, self._json_lines = text, json_lines

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its records, in the order in which they first appear."""
        return (*dict.fromkeys(row.record for row in self._rows),)

    @overload
    def __getitem__(self, at: int | tuple[str, int]) -> Row: ...

    @overload
    def __getitem__(self, at: slice | str) -> Sequence[Row]: ...

    def __getitem__(self, at: Any) -> Any:
        """Raises NoSuchRecord, which is a LookupError."""
        match at:
            case str():
                return self._of_kind(at)
            case (str() as kind, int() as place):
                found = self._of_kind(kind)
                if not -len(found) <= place < len(found):
                    raise NoSuchRecord(kind, f"a place below {len(found)}", str(place))
                return found[place]
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self.name or 'records'}: {len(self)} records of {', '.join(self.kinds)}>"

    def find(self, kind: str, **values: Any) -> Row:
        """The first record of a kind with these values: `find("POSITION-FORWARD", position=1)`.

        Raises NoSuchRecord, which is a LookupError.
        """
        for row in self._of_kind(kind):
            if all(np.array_equal(getattr(row, name), value) for name, value in values.items()):
                return row
        wanted = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise NoSuchRecord(kind, f"a record with {wanted}", "none")

    def text(self) -> str:
        """The trace as the program prints it, or as the file has it."""
        return "".join(self._text())

    def json_lines(self) -> str:
        """The trace as JSON Lines."""
        return "".join(self._json_lines())

    def _of_kind(self, kind: str) -> list[Row]:
        found = [row for row in self._rows if row.record == kind]
        if not found:
            expected, hint = one_of(kind.upper(), self.kinds)
            raise NoSuchRecord(self.name, expected, repr(kind), hint)
        return found


def _abridged(value: Any) -> str:
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        numbers = [shortest(float(number)) for number in flat[:_SHOWN]]
        more = "" if flat.size <= _SHOWN else f", … {flat.size - _SHOWN} more"
        shape = "x".join(map(str, value.shape))
        return f"[{', '.join(numbers)}{more}]" + (f" ({shape})" if value.ndim > 1 else "")
    return shortest(value) if isinstance(value, float) else repr(value)

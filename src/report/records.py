"""Records: one class a report line, declared once.

The class name is the kind, attribute names are the keys, annotations are the value types and
`field` says what a value means. Text, JSON and explanations read nothing else.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, dataclass_transform, get_args

from .style import Style
from .values import ABSENT, ValueType


class Field(NamedTuple):
    """One key of a record."""

    attribute: str
    key: str
    type: ValueType
    optional: bool  # may be None, printed as `none`
    meaning: str
    aligns: bool  # tells records of one kind apart
    omitted: bool  # left out of the line, key and all, where it is None


class _Declared(NamedTuple):
    meaning: str
    aligns: bool
    omitted: bool


def field(meaning: str, *, aligns: bool = False, omitted: bool = False) -> Any:
    """Declare a field: what it holds, with shape and formula.

    `aligns` marks what tells apart the records of one kind; `omitted` leaves out an absent value.
    """
    return _Declared(meaning, aligns, omitted)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Record:
    """Base of every line of a trace; fields are given by keyword and never change."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]

    def __init_subclass__(cls, kind: str | None = None) -> None:
        cls.kind = kind or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).upper()
        if "record" in cls.__annotations__:
            raise TypeError(f"{cls.__name__}.record: JSON Lines keep that key for the kind")
        cls.fields = tuple(
            _field(name, annotation, getattr(cls, name))
            for name, annotation in cls.__annotations__.items()
        )

    def __init__(self, **values: Any) -> None:
        expected = [field.attribute for field in self.fields]
        if values.keys() != {*expected}:
            raise TypeError(f"{type(self).__name__} takes {expected}, got {[*values]}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned")

    def text(self, style: Style) -> Iterator[str]:
        """The line without its end, in pieces."""
        yield style.spelled(self.kind)
        for declared, value in self._present():
            yield f"{style.separator}{style.spelled(declared.key)}="
            yield from (ABSENT,) if value is None else declared.type.text(value, style)

    def json(self) -> Iterator[str]:
        """The record as one JSON object, in pieces."""
        yield f'{{"record":"{self.kind}"'
        for declared, value in self._present():
            yield f',"{declared.key}":'
            yield from ("null",) if value is None else declared.type.json(value)
        yield "}"

    def _present(self) -> Iterator[tuple[Field, Any]]:
        for declared in self.fields:
            value = getattr(self, declared.attribute)
            if not (declared.omitted and value is None):
                yield declared, value


def _field(name: str, annotation: Any, declared: _Declared) -> Field:
    members = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    (value_type,) = members[0].__metadata__
    key = name.rstrip("_").replace("_", "-")
    return Field(name, key, value_type, len(members) > 1, *declared)

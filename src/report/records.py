"""Records: one class a report line, declared once.

The class name is the kind, attribute names are the keys, annotations are the value types and
`field` says what a value means. Text, JSON and explanations read nothing else.

An annotation may have the extents of a list of values beside its type, `Annotated[Reals, "tokens
width"]`: attributes of this record or of the trace's first one, or whole numbers. An attribute that
is a shape stands for all of its extents, `"scalar"` for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, dataclass_transform, get_args

from ..errors import sentence
from ..escaping import shown
from .style import Style
from .values import ABSENT, ItemError, ValueType

if TYPE_CHECKING:
    from .lines import Part


Formula = tuple[tuple[str, str], ...]
"""Conditions, of which the first that holds counts, each with its expression."""

Original = Callable[[Any], Any]
"""From a record to the value that an original demo prints in a field of it."""


class Field(NamedTuple):
    """One key of a record."""

    attribute: str
    key: str
    type: ValueType
    optional: bool  # may be None, printed as `none`
    meaning: str
    aligns: bool  # tells records of one kind apart
    omitted: bool  # left out of the line, key and all, where it is None
    shape: str | None  # the extents of its values, as attributes with spaces between them
    formula: Formula  # how it is worked out from others
    gradient_of: Formula  # what it is the derivative with respect to
    loss: str | None  # of what it is the derivative, where that is not the trace's loss
    original: Original | None  # the value of an original demo, where that is another one
    single: bool  # computed in float32

    def text(self, value: Any, style: Style) -> Iterable[str]:
        """The value as the trace prints it, in pieces; a word that means absence is quoted."""
        if value is None:
            return (ABSENT,)
        unclear = self.optional and not self.omitted and isinstance(value, str) and value == ABSENT
        return (f'"{ABSENT}"',) if unclear and style.quoted else self.type.text(value, style)


class _Declared(NamedTuple):
    meaning: str
    aligns: bool
    omitted: bool
    shape: str | None
    formula: Formula
    gradient_of: Formula
    loss: str | None
    original: Original | None
    single: bool


def field(
    meaning: str,
    formula: str | Mapping[str, str] = "",
    *,
    omitted: bool = False,
    gradient_of: str | Mapping[str, str] = "",
    loss: str | None = None,
    original: Original | None = None,
    single: bool = False,
) -> Any:
    """Declare a field: what it holds, and how that comes about.

    `formula` says how the value is worked out from others, as an expression that can be evaluated
    (see `tools.formulas.scope`), or one for each of several conditions: `{"time == 0": …, "": …}`.
    `gradient_of` is such an expression for what a gradient is taken with respect to, and `loss` for
    what it is the gradient of, where that is not the trace's own loss. `omitted` leaves out an
    absent value. `single` says that a value was computed in float32, whose rounding a central
    difference does not have.

    `original` works out from the record what the original demo prints in this place, where that is
    another fact; styles that follow the original have it instead.
    """
    formulas, gradients = _conditional(formula), _conditional(gradient_of)
    return _Declared(meaning, False, omitted, None, formulas, gradients, loss, original, single)


def key(meaning: str, formula: str | Mapping[str, str] = "", *, omitted: bool = False) -> Any:
    """Declare a field that tells apart the records of one kind."""
    declared: _Declared = field(meaning, formula, omitted=omitted)
    return declared._replace(aligns=True)


def _conditional(formula: str | Mapping[str, str]) -> Formula:
    formulas = {"": formula} if isinstance(formula, str) else formula
    return tuple((condition, text) for condition, text in formulas.items() if text)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, key))
class Record:
    """Base of every line of a trace; fields are given by keyword and never change."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    derived: ClassVar[tuple[str, ...]]  # the names of properties

    def __init_subclass__(cls, kind: str | None = None) -> None:
        cls.kind = kind or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).upper()
        if "record" in cls.__annotations__:
            raise TypeError(f"{cls.__name__}.record: JSON Lines keep that key for the kind")
        cls.fields = tuple(
            _field(name, annotation, getattr(cls, name))
            for name, annotation in cls.__annotations__.items()
        )
        members = vars(cls).items()
        cls.derived = tuple(name for name, member in members if isinstance(member, property))

    def __init__(self, **values: Any) -> None:
        expected = [field.attribute for field in self.fields]
        if values.keys() != {*expected}:
            raise TypeError(f"{type(self).__name__} takes {expected}, got {[*values]}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned")

    @classmethod
    def read(cls, parts: Iterable[Part]) -> Self:
        """The record that canonical text stands for. Raises FieldError."""
        found = {part.key: part for part in parts}
        values = {
            field.attribute: read_field(field, found.pop(field.key, None)) for field in cls.fields
        }
        for part in found.values():
            known = ", ".join(field.key for field in cls.fields)
            raise FieldError(part, f"one of the fields {known}", part.key)
        return cls(**values)

    def text(self, style: Style) -> Iterator[str]:
        """The line without its end, in pieces."""
        yield style.spelled(self.kind)
        for declared, value in self.present():
            yield f"{style.separator}{style.spelled(declared.key)}="
            if style.original and declared.original:
                value = declared.original(self)
            yield from declared.text(value, style)

    def json(self) -> Iterator[str]:
        """The record as one JSON object, in pieces."""
        yield f'{{"record":"{self.kind}"'
        for declared, value in self.present():
            yield f',"{declared.key}":'
            yield from ("null",) if value is None else declared.type.json(value)
        yield "}"

    def present(self) -> Iterator[tuple[Field, Any]]:
        """The fields that the line has, with their values."""
        for declared in self.fields:
            value = getattr(self, declared.attribute)
            if not (declared.omitted and value is None):
                yield declared, value


class FieldError(Exception):
    """A field that a record class does not have, or cannot read, or misses where `part` is None."""

    def __init__(self, part: Part | None, expected: str, found: str) -> None:
        super().__init__(sentence("", expected, found))
        self.part, self.expected, self.found = part, expected, found


def read_field(declared: Field, part: Part | None) -> Any:
    """The value that a field's canonical text stands for. Raises FieldError."""
    if part is None:
        if declared.omitted:
            return None
        raise FieldError(None, f"the field {declared.key}", "none of that name")
    if declared.optional and not declared.omitted and part.text == ABSENT:
        return None
    try:
        return declared.type.read(part.text)
    except ItemError as error:
        part = part._replace(text=error.item, column=part.column + error.offset)
        raise FieldError(part, f"{declared.key} as {error}", shown(part.text)) from None
    except ValueError as error:
        raise FieldError(part, f"{declared.key} as {error}", shown(part.text)) from None


def _field(name: str, annotation: Any, declared: _Declared) -> Field:
    members = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    value_type, *shapes = members[0].__metadata__
    if shapes:
        (shape,) = shapes
        declared = declared._replace(shape=shape)
    key = name.rstrip("_").replace("_", "-")
    return Field(name, key, value_type, len(members) > 1, *declared)

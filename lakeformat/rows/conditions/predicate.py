# SPDX-License-Identifier: Apache-2.0
"""Conditions on rows as users write them: ``col("amount") > 10``, joined by ``&``, ``|``, ``~``.

``sql.py`` parses SQL text to the same tree. ``filter.py`` checks names and values against the
columns of a table.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.conditions.literals import literal_text
from lakeformat.rows.prune import Op
from lakeformat.types.type_rules import is_text

__all__ = [
    "And",
    "Column",
    "Compare",
    "Constant",
    "IsIn",
    "IsNull",
    "Like",
    "Not",
    "Or",
    "Predicate",
    "col",
]

ESCAPE = "\\"
"""The default escape character: it makes ``%``, ``_`` or itself a plain character of a pattern."""


class Predicate(ABC):
    """A condition on rows: for each row true, false, or unknown because of a null."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> Predicate:
        return And((*_flat(And, self), *_flat(And, _predicate(other))))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_flat(Or, self), *_flat(Or, _predicate(other))))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidRequestError(
            f"{self.to_text()} has no value before a table is read: join conditions with "
            "&, | and ~ instead of and, or and not, each in parentheses, and write "
            "col(...).between(low, high) instead of low <= col(...) <= high"
        )

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the condition uses."""
        return frozenset(name for part in self._parts() for name in part.columns)

    @abstractmethod
    def to_text(self) -> str:
        """Return the condition as SQL text."""

    def _parts(self) -> Iterator[Predicate]:
        return iter(())


@dataclass(frozen=True, slots=True)
class _OnColumn(Predicate):
    column: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    @property
    def _name(self) -> str:
        return '"' + self.column.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Compare(_OnColumn):
    """A comparison of a column with a value; it is unknown if the column or the value is null."""

    op: Op
    value: Any

    def to_text(self) -> str:
        return f"{self._name} {self.op} {literal_text(self.value)}"


@dataclass(frozen=True, slots=True)
class IsIn(_OnColumn):
    """A condition that is true if the value of a column is one of ``values``."""

    values: tuple[Any, ...]

    def to_text(self) -> str:
        if not self.values:  # SQL has no empty list
            return "FALSE"
        return f"{self._name} IN ({', '.join(map(literal_text, self.values))})"


@dataclass(frozen=True, slots=True)
class IsNull(_OnColumn):
    """A condition that is true if a column is null; it is never unknown."""

    def to_text(self) -> str:
        return f"{self._name} IS NULL"


@dataclass(frozen=True, slots=True)
class Like(_OnColumn):
    """A condition that is true if a whole text matches a pattern.

    In a pattern, ``%`` is any text, and ``_`` any character.
    """

    pattern: str
    escape: str = ESCAPE

    def to_text(self) -> str:
        escape = "" if self.escape == ESCAPE else f" ESCAPE {literal_text(self.escape)}"
        return f"{self._name} LIKE {literal_text(self.pattern)}{escape}"


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """A condition with the same result for every row: TRUE, FALSE or NULL."""

    value: bool | None

    def to_text(self) -> str:
        return literal_text(self.value)


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The negation of a condition; unknown remains unknown."""

    part: Predicate

    def to_text(self) -> str:
        return f"NOT ({self.part.to_text()})"

    def _parts(self) -> Iterator[Predicate]:
        return iter((self.part,))


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """A condition that is true if all its parts are true."""

    parts: tuple[Predicate, ...]

    def to_text(self) -> str:
        return _joined("AND", self.parts)

    def _parts(self) -> Iterator[Predicate]:
        return iter(self.parts)


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """A condition that is true if at least one of its parts is true."""

    parts: tuple[Predicate, ...]

    def to_text(self) -> str:
        return _joined("OR", self.parts)

    def _parts(self) -> Iterator[Predicate]:
        return iter(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column in a condition; ``col("id") > 10`` and other comparisons return a ``Predicate``.

    A comparison with None or another column raises InvalidRequestError.
    """

    name: str

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Op.EQUAL, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Op.NOT_EQUAL, value)

    def __lt__(self, value: object) -> Predicate:
        return self._compare(Op.LESS, value)

    def __le__(self, value: object) -> Predicate:
        return self._compare(Op.LESS_EQUAL, value)

    def __gt__(self, value: object) -> Predicate:
        return self._compare(Op.GREATER, value)

    def __ge__(self, value: object) -> Predicate:
        return self._compare(Op.GREATER_EQUAL, value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[Any]) -> Predicate:
        """Return the condition that the column has one of ``values``.

        A null in ``values`` never matches. Raise InvalidRequestError if ``values`` is a single
        value.
        """
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidRequestError(
                f"col({self.name!r}).isin takes a list of values, as in isin([1, 2]), "
                f"got {values!r}"
            )
        if isinstance(values, pa.Array | pa.ChunkedArray) and not pa.types.is_temporal(values.type):
            # Times remain Arrow values: those of Python have no nanoseconds.
            values = values.to_pylist()
        return IsIn(self.name, tuple(values))

    def is_null(self) -> Predicate:
        """Return the condition that the column is null."""
        return IsNull(self.name)

    def is_not_null(self) -> Predicate:
        """Return the condition that the column has a value."""
        return Not(IsNull(self.name))

    def between(self, low: Any, high: Any) -> Predicate:
        """Return the condition that the column is at least ``low`` and at most ``high``."""
        return And(
            (
                self._compare(Op.GREATER_EQUAL, low),
                self._compare(Op.LESS_EQUAL, high),
            )
        )

    def like(self, pattern: str, escape: str = ESCAPE) -> Predicate:
        r"""Return the condition that the whole text matches a SQL pattern.

        ``%`` matches any text and ``_`` any character. After the character ``escape`` both are
        plain characters, as in ``\%``. Raise InvalidRequestError if ``pattern`` is not a text, or
        if ``escape`` is not one character.
        """
        if not all(isinstance(said, str) for said in (pattern, escape)) or len(escape) != 1:
            raise InvalidRequestError(
                f"col({self.name!r}).like takes a pattern, as in like('a%'), and one escape "
                f"character, got {pattern!r} and {escape!r}"
            )
        if not (is_text(pattern) and is_text(escape)):
            raise InvalidRequestError(
                f"col({self.name!r}).like takes a pattern that UTF-8 can hold, got {pattern!r}: "
                "leave out half surrogate pairs"
            )
        return Like(self.name, pattern, escape)

    def startswith(self, text: str) -> Predicate:
        """Return the condition that the column's text starts with ``text``."""
        return self.like(f"{_plain(self.name, text)}%")

    def endswith(self, text: str) -> Predicate:
        """Return the condition that the column's text ends with ``text``."""
        return self.like(f"%{_plain(self.name, text)}")

    def contains(self, text: str) -> Predicate:
        """Return the condition that the column's text contains ``text``."""
        return self.like(f"%{_plain(self.name, text)}%")

    def _compare(self, op: Op, value: Any) -> Predicate:
        if value is None:
            raise InvalidRequestError(
                f"None cannot be compared: write col({self.name!r}).is_null() or .is_not_null()"
            )
        if isinstance(value, Column):
            raise InvalidRequestError(
                f"{self.name!r} {op} {value.name!r}: a condition compares a column with a value; "
                "read the rows, then compare the columns"
            )
        return Compare(self.name, op, value)


def col(name: str) -> Column:
    """Return a column for conditions such as ``(col("dt") == "2024-01-01") &
    ~col("note").is_null()``.

    Raise InvalidRequestError if ``name`` is not a text, or is empty.
    """
    if not (name and isinstance(name, str)):
        raise InvalidRequestError(f"col takes the name of a column, as in col('id'), got {name!r}")
    return Column(name)


def _flat(kind: type[And | Or], part: Predicate) -> tuple[Predicate, ...]:
    return part.parts if isinstance(part, kind) else (part,)


def _predicate(other: object) -> Predicate:
    if not isinstance(other, Predicate):
        raise InvalidRequestError(
            f"a condition joins with another condition, got {other!r}; put each comparison in "
            "parentheses, and compare a BOOLEAN column with == True"
        )
    return other


def _plain(name: str, text: str) -> str:
    """Return a LIKE pattern that matches exactly ``text``.

    An error message names the column ``name``.
    """
    if not isinstance(text, str):
        raise InvalidRequestError(
            f"col({name!r}).startswith, endswith and contains take a str, got {text!r}; compare "
            "other values with =="
        )
    return re.sub(r"[\\%_]", r"\\\g<0>", text)


def _joined(word: str, parts: tuple[Predicate, ...]) -> str:
    shown = [f"({p.to_text()})" if isinstance(p, And | Or) else p.to_text() for p in parts]
    return f" {word} ".join(shown)

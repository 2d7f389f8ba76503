# SPDX-License-Identifier: Apache-2.0
"""The columns of a batch of messages, with declared types and the types of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.files.foreign.rounded_numbers import rounded_numbers, rounded_refusal
from lakeformat.files.foreign.text_checks import times_as_text
from lakeformat.types.arrow_types import type_of_column
from lakeformat.types.types import AtomicType, DataType
from spark_jobs.cdc.changes import MessageChanges
from spark_jobs.cdc.declared import Declared, Decoding, type_text
from spark_jobs.ingestion.type_widening import narrowest_integer, widest

__all__ = ["MessageColumn", "MessageColumns"]


@dataclass(slots=True)
class MessageColumn:
    """A column of messages: the type that they declare, and the types of the values so far."""

    name: str
    declared: Declared | None = None
    values: pa.DataType = field(default_factory=pa.null)
    """The Arrow type of the JSON values: numbers, text, booleans or nested values; null before the
    first value.
    """
    least: int = 0
    most: int = 0
    """The largest whole number so far; 0 if none is above 0. ``least`` is the smallest; 0 if none
    is below 0. The narrowest type follows from both.
    """
    rounded: dict[str, float] = field(default_factory=dict)
    """By the path of a part of the column, such as ``a.b``: a number that was parsed as DOUBLE, and
    is so large that it may have been rounded.
    """
    large: dict[str, float] = field(default_factory=dict)
    """By the path of a part: a whole number that was parsed as BIGINT, and is so large that it may
    be rounded if the part becomes DOUBLE.
    """

    @property
    def type(self) -> DataType | None:
        """The declared type, else the type of the values; None if both are unknown."""
        if self.declared is not None and self.declared.type is not None:
            return self.declared.type
        shown = _shown(self.values)
        return None if shown is None else type_of_column(self.name, shown)

    @property
    def is_declared(self) -> bool:
        """True if the messages declare a type for the column."""
        return self.declared is not None and self.declared.type is not None

    def require_exact(self, path: Sequence[str]) -> None:
        """Raise ``InvalidRequestError`` if the type of a new column, or of the new field ``path``,
        would come from numbers that may have been rounded.
        """
        if self.is_declared:
            return
        new = ".".join(path)
        # A part of whole numbers becomes DOUBLE if other messages have fractions.
        doubles = set(_doubles(self.values, self.name))
        large = {part: number for part, number in self.large.items() if part in doubles}
        for part, number in (self.rounded | large).items():
            if f"{part}.".startswith(f"{new}."):
                raise rounded_refusal(part, number)

    @property
    def integer(self) -> AtomicType:
        """The narrowest integer type that holds all whole numbers so far."""
        return narrowest_integer(self.least, self.most)

    def note(self, values: pa.Array) -> None:
        """Record values of the column; raise ``InvalidRequestError`` if no type holds both these
        and earlier values.
        """
        self._note_type(values.type)
        if pa.types.is_int64(values.type) and len(values) > values.null_count:
            least, most = pc.min_max(values).as_py().values()
            self.least, self.most = min(self.least, least), max(self.most, most)
        self.rounded.update(rounded_numbers(values, self.name))
        self.large.update(rounded_numbers(values, self.name, pa.int64()))

    def merge(self, other: MessageColumn) -> None:
        """Add the types of the same column in other messages; raise ``InvalidRequestError`` if no
        type holds the values of both.
        """
        self._note_type(other.values)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.rounded.update(other.rounded)
        self.large.update(other.large)
        if other.declared is not None:
            self.declare(other.declared)

    def declare(self, given: Declared) -> None:
        """Add a declared type; raise ``InvalidRequestError`` if no type holds the values of this
        and an earlier declaration, or if their encodings differ.
        """
        self.declared = given if self.declared is None else _both(self, given)

    def _note_type(self, met: pa.DataType) -> None:
        try:
            [merged] = pa.unify_schemas(
                [pa.schema([("", self.values)]), times_as_text(pa.schema([("", met)]))],
                promote_options="permissive",
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise lake.InvalidRequestError(
                f"column {self.name!r} has values of the types {self.values} and {met} in these "
                "messages, and no type holds both: make the source write one type, or remove the "
                "column from the messages"
            ) from None
        self.values = merged.type


@dataclass(slots=True)
class MessageColumns:
    """All columns of a batch of messages, in the order of the messages."""

    by_name: dict[str, MessageColumn] = field(default_factory=dict)
    lacks_before: bool = False
    """True if an update does not contain its whole old row."""

    def note(self, changes: Sequence[MessageChanges]) -> None:
        """Record the columns of changed rows. Raise ``InvalidRequestError`` if no type holds all
        values of a column.
        """
        after, before = (
            sum(len(part.rows) for part in changes if part.kind == kind) for kind in ("+U", "-U")
        )
        self.lacks_before |= after > before
        for part in changes:
            if pa.types.is_struct(part.rows.type):
                for member, values in zip(part.rows.type, part.rows.flatten(), strict=True):
                    self._column(member.name).note(values)

    def declare(self, declared: Mapping[str, Declared]) -> None:
        """Add the types that a schema in the messages declares, by column name.

        Raise ``InvalidRequestError`` if no type holds the values of two declarations of a column,
        or if their encodings differ.
        """
        for name, given in declared.items():
            self._column(name).declare(given)

    def merge(self, other: MessageColumns) -> None:
        """Add the columns of other messages. Raise ``InvalidRequestError`` if no type holds all
        values of a column.
        """
        self.lacks_before |= other.lacks_before
        for name, column in other.by_name.items():
            self._column(name).merge(column)

    def _column(self, name: str) -> MessageColumn:
        return self.by_name.setdefault(name, MessageColumn(name))


def _doubles(type: pa.DataType, name: str) -> Iterator[str]:
    """Yield the path of each DOUBLE part of a type, like the keys of ``MessageColumn.rounded``."""
    if pa.types.is_list(type):
        yield from _doubles(type.value_type, f"{name}.element")
    elif pa.types.is_struct(type):
        for part in type:
            yield from _doubles(part.type, f"{name}.{part.name}")
    elif pa.types.is_float64(type):
        yield name


def _shown(values: pa.DataType) -> pa.DataType | None:
    """Return a type without the parts that have only nulls or empty lists.

    Return None if no part remains.
    """
    if pa.types.is_null(values):
        return None
    if pa.types.is_list(values):
        element = _shown(values.value_type)
        return None if element is None else pa.list_(element)
    if pa.types.is_struct(values):
        parts = [(part.name, _shown(part.type)) for part in values]
        shown = [(name, type) for name, type in parts if type is not None]
        return pa.struct(shown) if shown else None
    return values


def _both(column: MessageColumn, given: Declared) -> Declared:
    """Return a declaration for the values of ``given`` and of the column's earlier declaration.

    Raise ``InvalidRequestError`` if no type holds both, or if the two encodings differ.
    """
    before = column.declared
    assert before is not None
    if before == given or given.type is None:
        return before
    if before.type is None:
        return given
    type = widest(before.type, given.type)
    if type is None or (before.decoding, before.scale) != (given.decoding, given.scale):
        raise lake.InvalidRequestError(
            f"column {column.name!r} changes from {_described(before, before.type)} to "
            f"{_described(given, given.type)} within one batch: ingest only the messages before "
            "that change, alter the table, then ingest the later messages"
        )
    return Declared(type, before.decoding, before.scale)


def _described(declared: Declared, type: DataType) -> str:
    if declared.decoding is Decoding.PLAIN:
        return type_text(type)
    return f"{type_text(type)} (as {declared.decoding.value})"

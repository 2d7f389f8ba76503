# SPDX-License-Identifier: Apache-2.0
"""Finds the schema changes that the rows of files and SQL tables need, for ``on_schema_change``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import lakeformat as lake
from lakeformat import SchemaChange, add_column, update_column_type
from lakeformat.catalog.row_schema import row_schema
from lakeformat.types.sentence import sentence
from lakeformat.types.types import BYTES, STRING, DataType, with_nullability
from spark_jobs.cdc.evolve import declaration, parts_beside
from spark_jobs.cdc.recognition import applying, message_format_of
from spark_jobs.ingestion.type_widening import widest
from spark_jobs.job_requests.ingest import IngestRequest, OnSchemaChange

__all__ = ["changes_for_types", "hinting_at_change"]

_ADD = "With on_schema_change='add' the job adds new columns to the table"
_WIDEN = (
    "With on_schema_change='widen' the job gives the column a wider type, if one holds all values"
)
_HINTS = {
    "the table has no column": (
        "fail",
        _ADD + "; columns={'name in table': 'name in source'} reads a column that has another name",
    ),
    "no value shows the type of column": (
        "fail add widen",
        "The key 'casts', such as casts={'note': 'STRING'}, gives the column a type",
    ),
    "would cause data loss": (
        "fail add widen",
        "The key 'casts', such as casts={'amount': 'DECIMAL(10, 2)'}, rounds numbers",
    ),
    "make the column a BIGINT": ("fail add", _WIDEN),
    "does not fit into": (
        "fail add",
        _WIDEN,
    ),
}


def changes_for_types(
    table: lake.Table, found: Mapping[str, DataType], on_change: OnSchemaChange
) -> list[SchemaChange]:
    """Return the changes that add the new columns in ``found`` and, if ``on_change`` is ``widen``,
    widen the types of existing columns. ``fail`` returns no changes.

    A column keeps its type if no type holds all values of both its own type and the type in
    ``found``. The writer then checks the values. Raise ``InvalidRequestError`` for a new column
    whose name differs from an old one only by case.
    """
    if on_change == "fail":
        return []
    there = {field.name: field.type for field in row_schema(table).fields}
    changes: list[SchemaChange] = []
    for name, type in found.items():
        if name in there:
            changes += _inside(name, type, there[name], widens=on_change == "widen")
        else:
            _require_other_letters(name, there)
            changes.append(add_column((name,), declaration(type)))
    return changes


@contextmanager
def hinting_at_change(wanted: IngestRequest) -> Iterator[None]:
    """Add a hint to an ``InvalidRequestError`` of the block, if a key of the request would help.

    This key is ``format`` for change messages, and ``on_schema_change``, ``columns`` or ``casts``
    for other rows.
    """
    try:
        yield
    except lake.InvalidRequestError as reason:
        if (messages := message_format_of(wanted)) is not None:
            reason.args = (f"{sentence(reason)} {applying(messages)}",)
            raise
        has_choice = wanted.source_table is None and not wanted.holds_messages
        for words, (settings, hint) in _HINTS.items():
            if has_choice and words in str(reason) and wanted.on_schema_change in settings.split():
                reason.args = (f"{sentence(reason)} {hint}",)
        raise


def _require_other_letters(new: str, there: Collection[str]) -> None:
    for name in there:
        if name.casefold() == new.casefold():
            raise lake.InvalidRequestError(
                f"the source has a column {new!r}, and the table has a column {name!r}: the names "
                f"differ only in case. Write columns={{{name!r}: {new!r}}}, or add {new!r} to the "
                "table first"
            )


def _inside(name: str, found: DataType, there: DataType, *, widens: bool) -> Iterator[SchemaChange]:
    for path, part, old in parts_beside(found, there, (name,)):
        if old is None:
            yield add_column(path, declaration(part))
        elif widens and (wider := _wider(old, part)) is not None:
            yield update_column_type(path, declaration(wider))


def _wider(old: DataType, found: DataType) -> DataType | None:
    """Return the type that holds the values of ``old`` and ``found``. Return None if the column
    keeps ``old``, because ``old`` is wide enough or no type holds both.

    If ``found`` is STRING or BYTES, the column keeps ``old``: these types declare no length.
    """
    if with_nullability(found, nullable=True) in (STRING, BYTES):
        return None
    wider = widest(old, found)
    return None if wider == with_nullability(old, nullable=True) else wider

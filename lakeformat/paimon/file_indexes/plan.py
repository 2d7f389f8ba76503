# SPDX-License-Identifier: Apache-2.0
"""Finds the data files whose file indexes differ from those that the table options request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.compact.partition_choice import Chosen, chosen_partitions
from lakeformat.paimon.datafile.file_index_writer import INDEX_SUFFIX, WantedIndex, wanted_indexes
from lakeformat.paimon.file_places import beside
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.file_index import decode_file_index, read_file_index
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import Storage
from lakeformat.types.types import DataField, with_nullability

__all__ = ["IndexUnit", "Indexed", "index_place", "plan_units"]

Indexed = frozenset[tuple[str, str]]
"""The indexes of a file: pairs of a column, by its name in the file, and an index type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexUnit:
    """One data file whose file indexes are to change."""

    snapshot: Snapshot
    entry: ManifestEntry
    path: str
    """The directory of the file's partition below the table; empty for a table without partitions.
    """
    wanted: tuple[WantedIndex, ...]
    fields: tuple[DataField, ...]
    """The columns to index, with their names in the file."""
    there: Indexed
    """The indexes that the file has at the time of the plan."""
    force: bool

    @property
    def reason(self) -> str:
        """The indexes that are missing or not requested any more, or "rebuilt, as requested"."""
        asked = frozenset((each.column, each.index_type) for each in self.wanted)
        parts = [f"{kind} of {column} is missing" for column, kind in sorted(asked - self.there)]
        parts += [
            f"{kind} of {column} is no longer requested"
            for column, kind in sorted(self.there - asked)
        ]
        return "; ".join(parts) or "rebuilt, as requested"


def plan_units(
    handle: TableHandle,
    snapshot: Snapshot,
    *,
    chosen: Chosen,
    force: bool,
) -> tuple[int, list[IndexUnit]]:
    """Return the number of files in the chosen partitions, and the files whose indexes are to
    change.

    Files in postponed buckets are left out. With ``force``, files whose indexes already match the
    options are included.
    """
    meant = chosen_partitions(handle.schema, chosen)
    entries = plan_columns(handle, snapshot).columns.entries()
    asked = meant({entry.partition for entry in entries})
    # Postponed files are merged in the order of their entries, so a new entry of an older file
    # would make its rows the newest.
    entries = [
        entry for entry in entries if entry.partition in asked and entry.bucket != POSTPONE_BUCKET
    ]
    plan = _IndexPlanner(handle, snapshot, force)
    return len(entries), [unit for entry in entries if (unit := plan.unit(entry)) is not None]


class _IndexPlanner:
    def __init__(self, handle: TableHandle, snapshot: Snapshot, force: bool) -> None:
        self._handle = handle
        self._snapshot = snapshot
        self._force = force
        self._schema: Callable[[int], TableSchema] = cache(self._read_schema)
        self._wanted = wanted_indexes(handle.schema.fields, handle.options)

    def unit(self, entry: ManifestEntry) -> IndexUnit | None:
        """Return the change for one file; None if its indexes match the options.

        With ``force``, a file for which the options request an index is always changed.
        """
        found = [*self._stored(entry)]
        there = _indexed(self._handle, entry)
        asked = frozenset((each.column, each.index_type) for each, _ in found)
        if asked == there and not (self._force and asked):
            return None
        fields = {field.name: field for _, field in found}
        return IndexUnit(
            snapshot=self._snapshot,
            entry=entry,
            path=partition_path(self._handle.schema, entry.partition),
            wanted=tuple(each for each, _ in found),
            fields=tuple(fields.values()),
            there=there,
            force=self._force,
        )

    def _stored(self, entry: ManifestEntry) -> Iterator[tuple[WantedIndex, DataField]]:
        """Yield the requested indexes that the file can have, each with its column in the file.

        The file must have the column, matched by field id, in its current type.
        """
        now = {field.name: field for field in self._handle.schema.fields}
        then = {field.id: field for field in self._schema(entry.file.schema_id).fields}
        for each in self._wanted:
            field = now[each.column]
            stored = then.get(field.id)
            if stored is not None and _same_type(stored, field):
                yield replace(each, column=stored.name), stored

    def _read_schema(self, schema_id: int) -> TableSchema:
        handle = self._handle
        if schema_id == handle.schema.id:
            return handle.schema
        return read_schema(handle.storage, handle.layout, schema_id)


def _same_type(one: DataField, other: DataField) -> bool:
    return with_nullability(one.type, nullable=True) == with_nullability(other.type, nullable=True)


def _indexed(handle: TableHandle, entry: ManifestEntry) -> Indexed:
    """Return the column and type of each index of a file.

    Return an empty set if an index is damaged or of a newer version.
    """
    found: set[tuple[str, str]] = set()
    try:
        if (embedded := entry.file.embedded_file_index) is not None:
            bodies = decode_file_index(embedded, f"the index of {entry.file.file_name}")
            found |= {(column, kind) for column, kinds in bodies.items() for kind in kinds}
        for name in entry.file.extra_files:
            if name.endswith(INDEX_SUFFIX):
                bodies = read_file_index(*index_place(handle, entry, name))
                found |= {(column, kind) for column, kinds in bodies.items() for kind in kinds}
    except (CorruptTableError, UnsupportedError):
        return frozenset()
    return frozenset(found)


def index_place(handle: TableHandle, entry: ManifestEntry, name: str) -> tuple[Storage, str]:
    """Return storage and path of the index file ``name`` beside its data file."""
    directory = partition_path(handle.schema, entry.partition)
    return beside(handle, entry.bucket, entry.file, directory, name)

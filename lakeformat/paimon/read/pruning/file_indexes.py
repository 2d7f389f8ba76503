# SPDX-License-Identifier: Apache-2.0
"""Pruning by file indexes: skips files whose index shows that no row meets the conditions.

Only files that statistics do not exclude are tested. An index covers the rows as stored, before a
merge. So in a table with a primary key, conditions on other columns exclude a file only if
``by_merged_values`` allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.datafile.file_index_writer import INDEX_SUFFIX
from lakeformat.paimon.file_places import beside
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.file_index import decode_file_index, read_file_index
from lakeformat.paimon.metadata.manifest import ManifestColumns, ManifestEntry
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.metadata.referrer import naming, referred_to_by
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.pruning.buckets import by_merged_values
from lakeformat.paimon.read.pruning.index_rows import Bodies, StoredCondition, rules_out
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import ColumnTest, Mask
from lakeformat.storage import Storage
from lakeformat.types.types import with_nullability

__all__ = ["IndexPruner"]

_FEW_FILES = 4
_READERS = 16
"""The number of files whose indexes are read in parallel."""


@dataclass(frozen=True, slots=True)
class IndexPruner:
    """Excludes files whose file indexes show that no row meets the conditions of a scan."""

    handle: TableHandle
    conditions: Sequence[ColumnTest]
    read_schema: Callable[[int], TableSchema]
    """A function from a schema id to the schema; files may have been written with older schemas."""
    named_by: Callable[[ManifestEntry], str]
    """Returns, for an error message, the manifest and the snapshot that name a file."""

    def mask(self, columns: ManifestColumns, places: Callable[[], Sequence[Positions]]) -> Mask:
        """Return a mask of the files to read.

        ``places`` returns the positions in ``columns`` of each bucket's files.
        """
        schema = self.handle.schema
        by_keys, by_all = np.ones(len(columns), np.bool_), np.ones(len(columns), np.bool_)
        # Partition columns need no index: the manifest holds their value.
        asked = [each for each in self.conditions if each.column not in schema.partition_keys]
        rows = _with_index(columns)
        if not asked or not len(rows) or not self.handle.options.file_index_read_enabled:
            return by_all
        keys = {field.name for field in schema.key_fields}
        on_keys = [each for each in asked if each.column in keys]
        found = self._test(columns.entries(rows), (on_keys, asked))
        by_keys[rows], by_all[rows] = zip(*found, strict=True)
        if not schema.primary_keys:
            return by_all
        if len(on_keys) < len(asked):
            # Files without the wanted keys have no influence on the merged rows.
            left = [there[by_keys[there]] for there in places()]
            merged = by_merged_values(schema, columns, by_all, [each for each in left if len(each)])
            by_keys &= merged
        return by_keys

    def _test(
        self, entries: Sequence[ManifestEntry], asked: Sequence[Sequence[ColumnTest]]
    ) -> list[tuple[bool, ...]]:
        """Return, for each file, a tuple with one bool for each list of conditions in ``asked``.

        The bool is True if a row of the file may meet all conditions of the list.
        """

        def test(entry: ManifestEntry) -> tuple[bool, ...]:
            try:
                return self._test_file(entry, asked)
            except CorruptTableError:
                with referred_to_by(self.named_by(entry)):
                    raise

        if len(entries) <= _FEW_FILES:
            return [*map(test, entries)]
        with ThreadPoolExecutor(_READERS) as pool:
            return [*pool.map(test, entries)]

    def _test_file(
        self, entry: ManifestEntry, asked: Sequence[Sequence[ColumnTest]]
    ) -> tuple[bool, ...]:
        stored = [self._as_stored(entry.file.schema_id, conditions) for conditions in asked]
        columns = {each.stored_name for conditions in stored for each in conditions}
        indexes = [*self._indexes(entry, columns)] if columns else []
        return tuple(
            not any(rules_out(bodies, conditions, source) for source, bodies in indexes)
            for conditions in stored
        )

    def _as_stored(self, schema_id: int, conditions: Sequence[ColumnTest]) -> list[StoredCondition]:
        """Return the conditions on columns that have the same type in the file's schema as now.

        Columns are compared by field id, because they may have been renamed.
        """
        now = {field.name: field for field in self.handle.schema.fields}
        then = {field.id: field for field in self.read_schema(schema_id).fields}
        found = []
        for condition in conditions:
            field = now.get(condition.column)
            stored = then.get(field.id) if field is not None else None
            if field is None or stored is None:
                continue
            if with_nullability(stored.type, nullable=True) == with_nullability(
                field.type, nullable=True
            ):
                found.append(StoredCondition(stored.name, stored.type, condition))
        return found

    def _indexes(self, entry: ManifestEntry, columns: set[str]) -> Iterator[tuple[str, Bodies]]:
        """Yield the embedded indexes of a data file, then the indexes of each of its index files.

        The str of each pair names the source of the indexes, for error messages.
        """
        embedded = entry.file.embedded_file_index
        if embedded is not None:
            source = f"_EMBEDDED_FILE_INDEX of data file {entry.file.file_name}"
            yield source, decode_file_index(embedded, source)
        for name in entry.file.extra_files:
            if name.endswith(INDEX_SUFFIX):
                storage, path = self._place(entry, name)
                yield storage.uri(path), read_file_index(storage, path, columns)

    def _place(self, entry: ManifestEntry, name: str) -> tuple[Storage, str]:
        with naming(f"_PARTITION of data file {entry.file.file_name}"):
            directory = partition_path(self.handle.schema, entry.partition)
        return beside(self.handle, entry.bucket, entry.file, directory, name)


def _with_index(columns: ManifestColumns) -> Positions:
    """Return the positions of the files that have an index, embedded or in an extra file."""
    extra = columns.extra_files.counts > 0
    some = columns.extra_files.take(np.flatnonzero(extra)).texts()
    extra[extra] = [any(name.endswith(INDEX_SUFFIX) for name in names or ()) for names in some]
    embedded = columns.embedded_file_index
    present = np.ones(len(columns), np.bool_) if embedded.present is None else embedded.present
    return np.flatnonzero(extra | present)

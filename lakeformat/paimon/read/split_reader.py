# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of splits: as stored, merged by key, or joined by row id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.looked_up import supersedes
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order, read_engine
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.merge.sections import is_interleaved
from lakeformat.paimon.merge.streams import batch_rows_of, merge_runs
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.joined_rows import joined_rows
from lakeformat.paimon.read.postponed_rows import as_one_run, chain_sections, split_off_postponed
from lakeformat.paimon.read.row_ranges import row_ranges
from lakeformat.paimon.read.sorted_run_reader import Filters, RunReader, conditions, meeting
from lakeformat.paimon.read.splits import Split, file_sections
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.encoded_texts import decoded
from lakeformat.rows.row_kinds import is_retract
from lakeformat.tables.read_ahead import read_ahead
from lakeformat.types.types import DataField

__all__ = ["SplitReader"]


@dataclass(frozen=True, slots=True)
class SplitReader:
    """Reads the rows that meet all conditions, from splits of one snapshot."""

    schema: TableSchema
    files: DataFiles
    wanted: tuple[DataField, ...]
    filters: Filters = ()

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Stream the wanted columns; the row order is the same each time."""
        names = [field.name for field in self.wanted]
        for batch in self._rows(split):
            yield decoded(batch.select(names))

    def _rows(self, split: Split) -> Iterator[pa.RecordBatch]:
        if split.raw_convertible:
            for entry in split.files:
                yield from self._as_stored(entry)
            return
        if not self.schema.primary_keys:
            for group in row_ranges(split.files):
                yield from self._joined(group)
            return
        postponed, files = split_off_postponed(split.files)
        if postponed:
            yield from self._with_postponed(postponed, files)
            return
        for section in file_sections(self.schema, files):
            yield from self._merged(section)

    def _as_stored(self, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
        # A batch without columns has no rows.
        fields = self._fields(self._looked_at) or self.schema.fields[:1]
        rows = self.files.rows(entry, fields, conditions(self.filters))
        yield from meeting(rows, self.filters)

    def _joined(self, group: tuple[ManifestEntry, ...]) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a group of files that hold columns of the same rows."""
        if len(group) == 1:
            yield from self._as_stored(group[0])
        else:
            fields = self._fields(self._looked_at) or self.schema.fields[:1]
            rows = joined_rows(self.schema, self.files, group, fields)
            yield from meeting(rows, self.filters)

    def _merged(self, section: list[list[ManifestEntry]]) -> Iterator[pa.RecordBatch]:
        """Stream the merged rows of a section of sorted runs, without retracts.

        Before a merge of several runs, only conditions on the key are applied, because the merge
        may take other columns from another row. With one run, all conditions are applied first.
        """
        before = self.filters if len(section) == 1 else self._on_keys
        engine, order = read_engine(self.schema), merge_order(self.schema)
        needed = engine.needs([*self._looked_at, *order.sequence])
        fields = self._fields([*order.keys, *needed, *order.sequence])
        numbered = is_interleaved([[entry.file for entry in run] for run in section])
        reader = RunReader(
            self.files,
            fields,
            before,
            batch_rows_of(len(section)) if len(section) > 1 else BATCH_ROWS,
            numbers=numbered,
            zeros=not isinstance(engine, Deduplicate),
            levels=supersedes(self.schema.table_options),
            carried=self._carried(fields, order, engine),
        )
        runs = [*map(reader.read, section)]
        merged = merge_runs(runs, order, engine, numbered=numbered, ahead=read_ahead)
        after = [] if before is self.filters else self.filters
        yield from meeting(_without_retracts(merged), after)

    def _with_postponed(
        self, postponed: list[ManifestEntry], files: list[ManifestEntry]
    ) -> Iterator[pa.RecordBatch]:
        """Stream the merged rows of a partition with postponed rows, which count as the newest."""
        engine, order = read_engine(self.schema), merge_order(self.schema)
        needed = engine.needs([*self._looked_at, *order.sequence])
        has_level = supersedes(self.schema.table_options)
        reader = RunReader(
            self.files,
            self._fields([*order.keys, *needed, *order.sequence]),
            self._on_keys,
            batch_rows_of(len(files) + 1),
            numbers=True,
            zeros=False,
            levels=has_level,
            carried=frozenset(),
        )
        last = as_one_run(
            replace(reader, levels=False).read(postponed),
            order,
            merge_engine(self.schema),
            first_number=max((each.file.max_sequence_number for each in files), default=-1) + 1,
            batch_rows=reader.batch_rows,
            has_level=has_level,
        )
        runs = [*map(reader.read, chain_sections(file_sections(self.schema, files))), last]
        yield from meeting(
            _without_retracts(merge_runs(runs, order, engine, ahead=read_ahead)), self.filters
        )

    def _carried(
        self, fields: Sequence[DataField], order: MergeOrder, engine: MergeEngine
    ) -> frozenset[str]:
        """Return the names of the columns that can remain dictionary-encoded: neither the merge nor
        a filter compares them.
        """
        if not isinstance(engine, Deduplicate):
            return frozenset()
        seen = {*order.keys, *order.sequence}
        seen.update(name for each in self.filters for name in each.columns)
        return frozenset(field.name for field in fields) - seen

    @property
    def _looked_at(self) -> list[str]:
        names = [field.name for field in self.wanted]
        return [*names, *sorted(name for each in self.filters for name in each.columns)]

    @property
    def _on_keys(self) -> Filters:
        keys = {field.name for field in self.schema.key_fields}
        return [each for each in self.filters if each.columns <= keys]

    def _fields(self, names: Sequence[str]) -> tuple[DataField, ...]:
        by_name = {field.name: field for field in self.schema.fields}
        return tuple(by_name[name] for name in dict.fromkeys(names))


def _without_retracts(tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        for batch in table.to_batches():
            retracts = is_retract(batch.column(VALUE_KIND.name).to_numpy())
            yield batch.filter(pa.array(~retracts)) if retracts.any() else batch

# SPDX-License-Identifier: Apache-2.0
"""Merges the files of a unit that needs a changelog or a lookup of old rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.paimon.compact.carried_columns import carried_columns
from lakeformat.paimon.compact.changelogs.changelog import ChangelogMerge
from lakeformat.paimon.compact.row_positions import (
    PLACE_COLUMNS,
    MarkedRows,
    PositionedRows,
    with_places,
)
from lakeformat.paimon.compact.steps import FileRuns, Rewrite, Upgrade
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.looked_up import with_level
from lakeformat.paimon.merge.merge_setup import merge_order
from lakeformat.paimon.merge.sections import is_interleaved, overlapping
from lakeformat.paimon.merge.streams import batch_rows_of, rounds_of
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.rows.encoded_texts import one_table
from lakeformat.rows.groups import KeyGroups, Positions
from lakeformat.rows.memory import merge_memory

__all__ = ["ChangelogRows"]


class ChangelogRows:
    """Merges the files of a unit, and writes their changelog to ``changelog``."""

    def __init__(
        self,
        handle: TableHandle,
        unit: CompactUnit,
        merge: ChangelogMerge,
        changelog: KeyValueWriter,
    ) -> None:
        self._schema, self._merge, self._changelog = handle.schema, merge, changelog
        self._deleted = PositionedRows(handle, unit.vectors)
        self._files = DataFiles(handle, unit.snapshot, self._deleted)
        self._entries = {entry.file.file_name: entry for entry in unit.files}
        self._looked_up = {entry.file.file_name: entry for entry in unit.looked_up}
        self._order = merge_order(handle.schema)
        self._makes_changelog = handle.options.makes_changelog
        self._marks = handle.options.deletion_vectors_enabled
        self._output_level = unit.output_level
        self._carried = carried_columns(handle.schema, unit.output_level)
        self._marked = MarkedRows()

    @property
    def marked(self) -> Mapping[str, Positions]:
        """The replaced rows in files of higher levels: row positions by file name."""
        return self._marked.by_file()

    def of(self, step: Rewrite) -> Iterator[pa.Table]:
        """Yield the merged rows of a step in key order, each key once; rows of kind DELETE are
        included.
        """
        for section in step.sections:
            yield from self._merged(section)

    def move(self, step: Upgrade) -> None:
        """Write the changelog of a file that only changes its level, and find the rows that it
        replaces.

        The file is read only if one of the two is needed.
        """
        if step.file.level == self._output_level:
            return
        if self._makes_changelog or (self._marks and self._above([step.file])):
            for _ in self._merged(((step.file,),)):
                pass

    def _merged(self, section: FileRuns) -> Iterator[pa.Table]:
        for rows, groups in self._rounds(section):
            stored = rows.drop_columns(PLACE_COLUMNS) if self._marks else rows
            merged = self._merge.merge(stored, groups)
            if self._makes_changelog:
                for batch in merged.changelog.to_batches():
                    if batch.num_rows:
                        self._changelog.write(batch)
            if self._marks and merged.superseded is not None and len(merged.superseded):
                self._marked.add(rows, merged.superseded)
            yield merged.rows

    def _rounds(self, section: FileRuns) -> Iterator[tuple[pa.Table, KeyGroups | None]]:
        fresh = [file for run in section for file in run if file.level == 0]
        runs: FileRuns = (*self._above(fresh), *section)
        size = batch_rows_of(len(runs)) if len(runs) > 1 else BATCH_ROWS
        streams = [self._run(run, size) for run in runs]
        if len(streams) == 1:
            for batch in streams[0]:
                yield pa.Table.from_batches([batch]), None
            return
        numbered = is_interleaved(runs)
        for parts in rounds_of(streams, self._order.keys):
            rows = one_table([batch for _, batches in parts for batch in batches])
            if len(parts) == 1:
                yield rows, None
                continue
            rows = rows.combine_chunks(memory_pool=merge_memory())
            yield rows, self._order.group(rows, numbered=numbered)

    def _above(self, fresh: Sequence[DataFileMeta]) -> list[tuple[DataFileMeta, ...]]:
        """Return the files of higher levels that may share keys with ``fresh``, a run for each
        level.

        The highest level is first.
        """
        others = [entry.file for entry in self._looked_up.values()]
        if not fresh or not others:
            return []
        key_types = [field.type for field in self._schema.key_fields]
        found = [others[at] for at in overlapping(fresh, others, key_types)]
        levels = sorted({file.level for file in found}, reverse=True)
        return [tuple(file for file in found if file.level == level) for level in levels]

    def _run(self, files: Sequence[DataFileMeta], rows: int) -> Iterator[pa.RecordBatch]:
        for file in files:
            entry = self._entries.get(file.file_name)
            if entry is None:
                yield from self._of_looked_up(self._looked_up[file.file_name], rows)
                continue
            for batch in self._key_values(entry, rows):
                batch = with_level(batch, file.level)
                yield with_places(batch, 0, None) if self._marks else batch

    def _of_looked_up(self, entry: ManifestEntry, rows: int) -> Iterator[pa.RecordBatch]:
        number = self._marked.number(entry.file.file_name)
        for batch in self._key_values(entry, rows):
            positions = self._deleted.last
            batch = with_level(batch, entry.file.level)
            yield with_places(batch, number, positions) if self._marks else batch

    def _key_values(self, entry: ManifestEntry, rows: int) -> Iterator[pa.RecordBatch]:
        return self._files.key_values(
            entry, self._schema.fields, batch_rows=rows, encoded=self._carried
        )

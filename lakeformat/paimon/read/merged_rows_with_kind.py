# SPDX-License-Identifier: Apache-2.0
"""Reads the merged rows of a bucket with their row kinds, optionally with retracts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.merge.looked_up import supersedes, with_level
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order, read_engine
from lakeformat.paimon.merge.row_kinds import without_retracts
from lakeformat.paimon.merge.streams import merge_runs
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.postponed_rows import as_one_run, chain_sections, split_off_postponed
from lakeformat.paimon.read.splits import file_sections
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.types import DataField

__all__ = ["MergedRowsWithKind"]


@dataclass(frozen=True, slots=True)
class MergedRowsWithKind:
    """Reads ``_VALUE_KIND`` and the wanted columns of the merged rows of a bucket, in key order."""

    schema: TableSchema
    files: DataFiles
    wanted: tuple[DataField, ...]

    @staticmethod
    def schema_of(wanted: tuple[DataField, ...]) -> pa.Schema:
        """Return the Arrow schema of the rows that ``read`` returns."""
        return to_arrow_schema((VALUE_KIND, *wanted))

    def read(
        self, files: Sequence[ManifestEntry], *, keep_retracts: bool
    ) -> Iterator[pa.RecordBatch]:
        """Stream the merged rows of one bucket, or of a partition with postponed rows.

        Each key occurs once. Without ``keep_retracts``, a key whose merged row is a retract is left
        out.
        """
        engine, order = read_engine(self.schema), merge_order(self.schema)
        names = [field.name for field in self.wanted]
        needed = [*order.keys, *engine.needs([*names, *order.sequence]), *order.sequence]
        by_name = {field.name: field for field in self.schema.fields}
        fields = tuple(by_name[name] for name in dict.fromkeys(needed))
        for runs in self._sections(files, fields):
            for table in merge_runs(runs, order, engine):
                for batch in table.select([VALUE_KIND.name, *names]).to_batches():
                    yield batch if keep_retracts else without_retracts(batch)

    def _sections(
        self, files: Sequence[ManifestEntry], fields: tuple[DataField, ...]
    ) -> Iterator[list[Iterator[pa.RecordBatch]]]:
        postponed, others = split_off_postponed(files)
        sections = file_sections(self.schema, others)
        if not postponed:
            yield from ([self._run(run, fields) for run in section] for section in sections)
            return
        last = as_one_run(
            (rows for entry in postponed for rows in self.files.key_values(entry, fields)),
            merge_order(self.schema),
            merge_engine(self.schema),
            first_number=max((each.file.max_sequence_number for each in others), default=-1) + 1,
            batch_rows=BATCH_ROWS,
            has_level=supersedes(self.schema.table_options),
        )
        yield [*(self._run(run, fields) for run in chain_sections(sections)), last]

    def _run(
        self, run: Sequence[ManifestEntry], fields: tuple[DataField, ...]
    ) -> Iterator[pa.RecordBatch]:
        for entry in run:
            rows = self.files.key_values(entry, fields)
            if supersedes(self.schema.table_options):
                rows = map(partial(with_level, level=entry.file.level), rows)
            yield from rows

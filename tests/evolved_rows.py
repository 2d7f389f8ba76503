"""A data-evolution table and its rows as a model: files that replace columns of older rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.simple_stats import SimpleStats

__all__ = ["DATA_EVOLUTION", "EvolvedRows"]

DATA_EVOLUTION = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}

Row = dict[str, Any]


@dataclass
class EvolvedRows:
    """The written rows, and the rows to read: ``rows`` in the order of their ids."""

    table: lake.Table
    rows: list[Row] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    """The first row id of every range, and how many rows it has."""

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows as the library does."""
        self.table.write(self._arrow(rows))
        self.starts[len(self.rows)] = len(rows)
        self.rows += [dict(row) for row in rows]

    def update(
        self, first: int, values: Sequence[Mapping[str, Any]], *, whole: bool = False
    ) -> DataFileMeta:
        """Replace columns of the rows from ``first`` on, as other engines do.

        The file has the other columns too, with values that no reader may show; ``whole`` is a
        file of all columns, which names none of them.
        """
        names = tuple(values[0])
        junk = {} if whole else {"id": -1, "name": "junk"}
        message = self.prepare([{**junk, **row} for row in values])
        [file] = message.new_files
        file = replace(file, first_row_id=first)
        if not whole:
            unknown = SimpleStats(file.key_stats.min_values, file.key_stats.max_values, ())
            file = replace(file, write_cols=names, value_stats=unknown, value_stats_cols=())
        self.table.commit([replace(message, new_files=(file,))])
        for row, new in zip(self.rows[first:], values, strict=False):
            row.update(new)
        return file

    def mark_deleted(self, entry: IndexManifestEntry) -> None:
        """Publish a deletion vector."""
        message = CommitMessage(bucket=0, partition=entry.partition, new_index_files=(entry,))
        self.table.commit([message])

    def prepare(self, rows: Sequence[Row]) -> CommitMessage:
        """Write a file that no snapshot has yet."""
        with self.table.new_writer() as writer:
            writer.write(self._arrow(rows))
            [message] = writer.prepare()
        assert isinstance(message, CommitMessage)
        return message

    def _arrow(self, rows: Sequence[Row]) -> pa.Table:
        schema = self.table.schema.arrow_schema()
        return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)

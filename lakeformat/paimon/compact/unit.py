# SPDX-License-Identifier: Apache-2.0
"""The plan of a compaction: units of work, and the buckets that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakeformat.paimon.compact.other_compactor import OtherCompactor
from lakeformat.paimon.compact.sorting.order import RowOrder
from lakeformat.paimon.compact.steps import Rewrite, Step, Upgrade
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["CompactPlan", "CompactUnit", "NotChosen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactUnit:
    """One unit of work: a bucket of a primary-key table, or files of an append table.

    It can be pickled and run in another process. Its commit conflicts if one of its files is not
    live any more.
    """

    snapshot: Snapshot
    """The snapshot on which the unit was planned."""
    schema_id: int
    path: str
    """The directory of the partition below the table, for messages; empty without partitions."""
    files: tuple[ManifestEntry, ...]
    """The entries of the files to replace.

    A file that only changes its level is among them, and is added again with the new level.
    """
    steps: tuple[Step, ...]
    output_level: int = 0
    drop_delete: bool = False
    """True to drop rows of the kinds DELETE and UPDATE_BEFORE.

    Set this to True only if no older row of the same key becomes visible.
    """
    is_last: bool = False
    """True if the output level is the highest level."""
    looked_up: tuple[ManifestEntry, ...] = ()
    """The entries of all files above the output level, in which old rows are looked up.

    These files are only read. The tuple is empty if the table needs no lookup of old rows.
    """
    marked_elsewhere: frozenset[str] = frozenset()
    """The names of files that are not in ``files``, but have a deletion vector in ``vectors``.

    These deletion vectors are kept.
    """
    vectors: tuple[IndexManifestEntry, ...] = ()
    """The index files with the deletion vectors of the unit's files."""
    deleted_rows: int = 0
    """The number of rows of ``files`` that deletion vectors delete."""
    expected_files: int = 1
    buckets: int | None = None
    """The number of buckets to which postponed rows are moved; None without postponed rows."""
    order: RowOrder | None = None
    """The order in which rows of an append table are written; None keeps the order of the files."""
    reason: str

    @property
    def partition(self) -> bytes:
        """The partition as a framed binary row."""
        return self.files[0].partition

    @property
    def bucket(self) -> int:
        return self.files[0].bucket

    @property
    def place(self) -> str:
        """The partition and bucket, for messages."""
        return f"partition {self.path}, bucket {self.bucket}" if self.path else _bucket(self.bucket)

    def message(self, handle: TableHandle, made: Iterable[DataFileMeta]) -> CommitMessage:
        """Return the message that replaces the unit's files by ``made``.

        The caller adds changelog and index files.
        """
        return CommitMessage(
            table=handle.uri,
            partition=self.partition,
            bucket=self.bucket,
            total_buckets=self.files[0].total_buckets,
            base_snapshot=self.snapshot.id,
            branch=handle.layout.branch,
            compact_before=tuple(entry.file for entry in self.files),
            compact_after=tuple(made),
        )

    @property
    def rewritten(self) -> list[DataFileMeta]:
        """The files whose rows are read and written again."""
        return [file for step in self.steps if isinstance(step, Rewrite) for file in step.files]

    @property
    def moved(self) -> list[DataFileMeta]:
        """The files that only change their level; their rows are not written again."""
        return [step.file for step in self.steps if isinstance(step, Upgrade)]

    @property
    def rows(self) -> int:
        """The number of rows to read and write, without rows that deletion vectors delete."""
        return sum(file.row_count for file in self.rewritten) - self.deleted_rows

    @property
    def bytes(self) -> int:
        """The size in bytes of the files that are rewritten."""
        return sum(file.file_size for file in self.rewritten)

    @property
    def expected_gain(self) -> str:
        """The gain for readers, as text for the plan, estimated from metadata."""
        fewer = len(self.files) - self.expected_files
        found = [
            f"{counted(fewer, 'file')} fewer to open" if fewer > 0 else "",
            "no merge when read" if self._ends_merging else "",
            f"{counted(self.deleted_rows, 'deleted row')} not read any more"
            if self.deleted_rows
            else "",
            f"queries by {', '.join(self.order.columns)} skip files" if self.order else "",
        ]
        return ", ".join(filter(None, found)) or "none estimated"

    @property
    def _ends_merging(self) -> bool:
        """True if the unit merges several runs of its bucket into one run on the highest level."""
        places = {entry.file.level or entry.file.file_name for entry in self.files}
        return self.is_last and len(places) > 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "partition": self.path,
            "bucket": self.bucket,
            "chosen": True,
            "reason": self.reason,
            "output_level": self.output_level,
            "files": len(self.files),
            "files_moved": len(self.moved),
            "rows": self.rows,
            "bytes": self.bytes,
            "expected_files": self.expected_files,
            "expected_gain": self.expected_gain,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChosen:
    """A bucket that a plan does not compact, and the reason."""

    path: str
    bucket: int
    files: int
    bytes: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "partition": self.path,
            "bucket": self.bucket,
            "chosen": False,
            "reason": self.reason,
            "files": self.files,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPlan:
    """The plan of a compaction: units of work, and buckets that are left out.

    Planning reads no data file and changes nothing.
    """

    table: str
    strategy: str
    snapshot_id: int | None
    """The id of the snapshot that the plan is for; None for a table without a snapshot."""
    schema_id: int
    """The id of the schema with which files are rewritten, the newest at the time of the plan."""
    units: tuple[CompactUnit, ...] = ()
    not_chosen: tuple[NotChosen, ...] = ()
    other_compactor: OtherCompactor | None = None
    """Another program that also compacts the table, or None.

    Its commits may conflict with the commits of this library.
    """

    @property
    def bytes(self) -> int:
        """The size in bytes of all files that are rewritten; about as many bytes are written."""
        return sum(unit.bytes for unit in self.units)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        other = self.other_compactor
        return {
            "table": self.table,
            "strategy": self.strategy,
            "snapshot_id": self.snapshot_id,
            "bytes": self.bytes,
            "rows": sum(unit.rows for unit in self.units),
            "other_compactor": None if other is None else other.to_dict(),
            "buckets": [
                *(unit.to_dict() for unit in self.units),
                *(other.to_dict() for other in self.not_chosen),
            ],
        }

    def __str__(self) -> str:
        """Return a heading, a line for each unit and each bucket that was not chosen, and the
        warning about another compactor.
        """
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        at = f"snapshot {self.snapshot_id}" if self.snapshot_id else "no snapshot"
        units = counted(len(self.units), "unit")
        yield f"{self.strategy} compaction of {self.table} at {at}: {units}"
        for unit in self.units:
            yield (
                f"  {unit.place}: {counted(len(unit.files), 'file becomes', 'files become')} about "
                f"{unit.expected_files}, "
                f"{size(unit.bytes)} to read: {unit.reason}; gain: {unit.expected_gain}"
            )
        for other in self.not_chosen:
            place = f"partition {other.path}, " if other.path else ""
            yield f"  {place}{_bucket(other.bucket)}: not chosen: {other.reason}"
        if self.other_compactor is not None:
            yield f"WARNING: {self.other_compactor.warning}"


def _bucket(number: int) -> str:
    return f"bucket {number}"

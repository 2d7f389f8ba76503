# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of a partition, or of some of its buckets, to another number of buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError, LakeError
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.postponed import with_buckets
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.instant_zones import rewriting_instants
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import Split
from lakeformat.paimon.write.append_bucket import AppendBuckets
from lakeformat.paimon.write.assign import Assigner, PartitionNumbers
from lakeformat.paimon.write.key_value_bucket import KeyValueBuckets
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.row_kinds import INSERT

__all__ = ["Part", "PartOutcome", "Rewriting", "classes_of", "scan_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """Some buckets of a partition, which are rewritten independently of its other buckets.

    A part can be pickled.
    """

    partition: bytes
    splits: tuple[Split, ...]
    classes: int
    """The divisor that leaves ``remainder`` for each old and each new bucket number of the part."""
    remainder: int

    @property
    def bytes(self) -> int:
        """The size of the part's files in bytes."""
        return sum(split.size_bytes for split in self.splits)


PartOutcome = tuple[Part, list[CommitMessage], LakeError | None]
"""A part, the messages to commit, and the LakeError if it failed, else None."""


def classes_of(handle: TableHandle, before: Sequence[int], count: int) -> int:
    """Return the number of parts of a partition that can be rewritten independently.

    ``before`` are the current bucket counts of the partition, and ``count`` is the new one. For
    tables with a primary key, the result is the greatest common divisor of all these counts. The
    old and the new bucket number of a row leave the same remainder when divided by it. For other
    tables, the result is 1.
    """
    return gcd(count, *before) if handle.schema.primary_keys else 1


def scan_of(handle: TableHandle, snapshot: Snapshot) -> Scan:
    """Return a scan of the rows that readers see, without the rows of ``bucket-postpone``."""
    options = {**handle.schema.options, "postpone.merge-on-read": "false"}
    return Scan(replace(handle, schema=replace(handle.schema, options=options)), snapshot, None)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Writes the rows of a part to new buckets; it can be pickled and called in another process."""

    handle: TableHandle
    """The table with the schema of the plan; no file of the snapshot has a newer schema."""
    scan: Scan
    base_snapshot: int
    count: int

    def __call__(self, part: Part) -> PartOutcome:
        """Write new files with the rows of a part; a ``LakeError`` is returned, not raised.

        After an error the new files are deleted.
        """
        entries = [entry for split in part.splits for entry in split.files]
        target = with_buckets(self.handle, self.count)
        messages: list[CommitMessage] = []
        try:
            target = rewriting_instants(target, self.scan.snapshot, entries)
            messages = self._rewritten(target, part)
            self._require_apart(part, messages)
        except LakeError as error:
            delete_written(target, messages)
            return part, [], error
        return part, messages, None

    def _rewritten(self, target: TableHandle, part: Part) -> list[CommitMessage]:
        """Write the rows of ``part`` to new files, and return the messages to commit.

        After any error, delete the new files.
        """
        schema = target.schema
        assign = Assigner(schema, PartitionNumbers(schema, None))
        sequences = SequenceNumbers(target, None)
        buckets: AppendBuckets | KeyValueBuckets
        if schema.primary_keys:
            buckets = KeyValueBuckets(target, sequences, assign.place, with_changelog=False)
        else:
            buckets = AppendBuckets(target, sequences, assign.place)
        try:
            for batch in self._rows(part):
                kinds = np.full(batch.num_rows, INSERT, np.int8)
                buckets.add(batch, kinds, assign(batch, range(batch.num_rows)))
            made = buckets.finish()
        except BaseException:
            buckets.abort()
            raise
        return [
            CommitMessage(
                table=target.uri,
                partition=files.place.partition,
                bucket=files.place.bucket,
                total_buckets=self.count,
                base_snapshot=self.base_snapshot,
                branch=target.layout.branch,
                new_files=files.data,
            )
            for files in made
        ]

    def _rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        for split in part.splits:
            yield from (batch for batch in self.scan.read(split) if batch.num_rows)

    def _require_apart(self, part: Part, messages: Sequence[CommitMessage]) -> None:
        """Raise CorruptTableError if a row of ``part`` belongs to a new bucket of another part.

        If two parts wrote to one bucket, both would use the same sequence numbers for their rows.
        """
        for message in messages:
            if message.bucket % part.classes != part.remainder:
                place = partition_path(self.handle.schema, part.partition)
                raise CorruptTableError(
                    f"{f'partition {place} of ' if place else ''}{self.handle.uri} has rows in "
                    "buckets that do not match their keys, for example rows for bucket "
                    f"{message.bucket} of the {self.count} new buckets. Rescale with "
                    "executor='serial', which accepts such rows"
                )

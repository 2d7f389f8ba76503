# SPDX-License-Identifier: Apache-2.0
"""Rows that count as written right after an earlier snapshot, although they are committed later.

Rows that other writers have committed since that snapshot are newer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.write.assign import Place, RowsByPlace
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.groups import Mask, Positions
from lakeformat.types.count_text import counted

__all__ = ["NumbersAsOf", "WrittenAsOf"]


@dataclass(frozen=True, slots=True)
class WrittenAsOf:
    """The snapshot from which rows were computed, and the keys that have changed since."""

    snapshot: Snapshot | None
    """None for the empty table before the first snapshot."""
    is_changed: Callable[[pa.RecordBatch], Mask]
    """Returns a mask of the rows whose key another commit has changed since; these rows are not
    written.
    """

    def filtered(self) -> WrittenAsOf:
        """Return a copy whose ``is_changed`` marks no row.

        Use the copy to write rows from which the rows of changed keys have already been removed.
        """
        return replace(self, is_changed=lambda rows: np.zeros(rows.num_rows, np.bool_))


class NumbersAsOf(SequenceNumbers):
    """Gives all rows that a bucket has in one sorted run the same sequence number.

    In the first run, this number is one more than the highest number that the bucket has in the
    given snapshot. Each later run has the next number. Another writer that was opened after that
    snapshot usually gives its rows higher numbers. Then the rows of that writer count as newer,
    even if that writer commits first.
    """

    def __init__(self, handle: TableHandle, snapshot: Snapshot | None) -> None:
        """Continue the numbers of ``snapshot``; without one, as in an overwrite, start at 0."""
        super().__init__(handle, snapshot)
        self._runs: dict[Place, int] = {}
        self._in_run: set[Place] = set()

    def number(self, rows: RowsByPlace, place_of: Callable[[int], Place]) -> Positions:
        """Return the sequence number of each row.

        In one sorted run, all rows of a bucket have the same number.
        """
        self.look_up(place_of(int(place)) for place in rows.places)
        numbers = np.empty(len(rows.order), np.int64)
        for place, positions in rows:
            at = place_of(place)
            self._in_run.add(at)
            numbers[positions] = self._next.get(at, 0) + self._runs.get(at, 0)
        return numbers

    def end_run(self) -> None:
        for place in self._in_run:
            self._runs[place] = self._runs.get(place, 0) + 1
        self._in_run.clear()

    def _require_bucket_count(self, live: ManifestColumns) -> None:
        """Raise CommitConflictError for a partition that was rescaled since the snapshot.

        Raise InvalidRequestError for any other partition whose number of buckets differs from the
        option ``bucket``.
        """
        try:
            super()._require_bucket_count(live)
        except InvalidRequestError:
            handle, base = self._handle, self._snapshot
            head = latest_snapshot(handle.storage, handle.layout)
            assert base is not None
            if head is None or head.id <= base.id:
                raise
            partitions = {each for each in live.partition.values() if each is not None}
            # Raises again if the option was changed, but the partition was not rescaled.
            super()._require_bucket_count(self._files_of(partitions, head))
            rescaled = CommitConflictError(
                f"this batch on {handle.uri} was computed from snapshot {base.id}, but a partition "
                "that the batch changes has since been rescaled to "
                f"{counted(handle.options.bucket, 'bucket')}. Nothing was published; read the "
                "table again and repeat the work, and do not rescale a table while batches run"
            )
            rescaled.is_final = True
            raise rescaled from None

# SPDX-License-Identifier: Apache-2.0
"""The start of a stream of changes, and the rows that it returns for each snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import Position

if TYPE_CHECKING:
    import pandas

__all__ = ["StreamBegin", "StreamStart", "StreamedChanges"]

_MODES = (
    "latest-full",
    "latest",
    "from-snapshot",
    "from-snapshot-full",
    "from-timestamp",
    "compacted-full",
)
_AT_SNAPSHOT = ("from-snapshot", "from-snapshot-full")


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The snapshot at which a stream without stored progress starts."""

    mode: str
    snapshot: int | None = None
    as_of: Moment | None = None

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidRequestError(
                f"the mode of a stream must be one of {', '.join(_MODES)}, got {self.mode!r}"
            )
        if (self.mode in _AT_SNAPSHOT) is (self.snapshot is None):
            raise InvalidRequestError(
                f"mode={self.mode!r} does not fit snapshot={self.snapshot!r}: the modes "
                f"{' and '.join(_AT_SNAPSHOT)} need a snapshot, the other modes take none"
            )
        if self.snapshot is not None and type(self.snapshot) is not int:
            raise InvalidRequestError(
                f"'snapshot' must be a snapshot number, got {self.snapshot!r}"
            )
        if (self.mode == "from-timestamp") is (self.as_of is None):
            raise InvalidRequestError(
                f"mode={self.mode!r} does not fit as_of={self.as_of!r}: the mode from-timestamp "
                "needs a time, the other modes take none"
            )


@dataclass(frozen=True, slots=True)
class StreamBegin:
    """The first snapshots of a stream.

    ``full`` is the id of the snapshot that is read in full; None without a full read.
    ``next_snapshot`` is the number of the first snapshot that is read for its changes.
    """

    next_snapshot: int
    full: int | None
    position: Position
    """The position right before the first snapshot that is read for its changes."""


class StreamedChanges:
    """The rows that a stream returns for one snapshot: its full state or its changes."""

    def __init__(
        self,
        snapshot_id: int,
        position: Position,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        full: bool,
    ) -> None:
        self.snapshot_id = snapshot_id
        self.position = position
        """The position of a reader that has read these rows."""
        self.is_full = full
        """True if the rows are the full state of the snapshot, False if they are its changes."""
        self.schema = schema
        self._batches = batches

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows, once only; ``rowkind`` is the first column."""
        yield from self._batches

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table; the rows can be read only once."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame; the rows can be read only once."""
        return self.to_arrow().to_pandas()

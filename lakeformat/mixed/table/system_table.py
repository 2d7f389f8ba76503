# SPDX-License-Identifier: Apache-2.0
"""System tables of a Mixed table: the snapshots and the live files of both stores as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.read.plan import plan_files
from lakeformat.mixed.read.store_files import StoreFile, base_files, change_files
from lakeformat.mixed.stores.properties import BASE, CHANGE
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.table.find_state import find_state
from lakeformat.mixed.table.mixed_history import mixed_history
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.results import Rows
from lakeformat.tables.table import offering_arguments
from lakeformat.types.closest import closest
from lakeformat.types.sentence import sentence

__all__ = ["SYSTEM_TABLES", "MixedSystemTable"]

_SNAPSHOTS, _FILES = "snapshots", "files"
SYSTEM_TABLES: Final[Mapping[str, pa.Schema]] = {
    _SNAPSHOTS: pa.schema(
        [
            ("committed_at", pa.timestamp("ms", tz="UTC")),
            ("position", pa.string()),
            ("store", pa.string()),
            ("snapshot_id", pa.int64()),
            ("kind", pa.string()),
            ("operation", pa.string()),
        ]
    ),
    _FILES: pa.schema(
        [
            ("store", pa.string()),
            ("partition", pa.string()),
            ("node", pa.string()),
            ("kind", pa.string()),
            ("transaction_id", pa.int64()),
            ("sequence_number", pa.int64()),
            ("is_merged", pa.bool_()),
            ("record_count", pa.int64()),
            ("file_size_in_bytes", pa.int64()),
            ("delete_files", pa.int64()),
            ("file_path", pa.string()),
        ]
    ),
}
"""The columns of each system table.

``is_merged`` is True if the changes of the file are merged into the base store; null for files of
the base store.
"""


class MixedSystemTable:
    """A system table: ``table.system_table("files").scan().to_arrow()``."""

    operations: ClassVar = frozenset({"scan"})

    def __init__(self, name: str, load: Callable[[], LoadedPair]) -> None:
        known = [*SYSTEM_TABLES, BASE, CHANGE]
        if name not in SYSTEM_TABLES:
            unknown = f"a Mixed table has no system table {name!r}, only {', '.join(known)}"
            raise NotFoundError(
                f"{sentence(unknown + closest(name, known))} Each store has the system "
                "tables of Iceberg: table.base.system_table(…), table.change.system_table(…)"
            )
        self.name = name
        self._load = load

    @property
    def location(self) -> str:
        """The location of the Mixed table."""
        return self._load().base.places.uri

    @offering_arguments
    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        newest: bool = False,
    ) -> Rows:
        """Return the rows. Only ``files`` takes a position (``snapshot``) or a time (``as_of``).

        ``newest`` has no effect, because no property of a Mixed table chooses a snapshot. Raise
        ``InvalidRequestError`` for an unknown column, and for an argument that the system table
        does not take. Raise ``NotFoundError`` if the chosen state has expired or never existed.
        """
        if tag is not None or (self.name == _SNAPSHOTS and (snapshot, as_of) != (None, None)):
            raise InvalidRequestError(
                f"${self.name} of a Mixed table takes "
                + (
                    "snapshot or as_of, not a tag"
                    if self.name == _FILES
                    else "no snapshot, tag or as_of"
                )
            )
        schema = SYSTEM_TABLES[self.name]
        names = schema.names if columns is None else [*columns]
        if unknown := [each for each in names if each not in schema.names]:
            raise InvalidRequestError(
                f"${self.name} has no column {unknown[0]!r}; its columns are "
                f"{', '.join(schema.names)}{closest(unknown[0], schema.names)}"
            )
        pair = self._load()
        rows = (
            _snapshot_rows(pair)
            if self.name == _SNAPSHOTS
            else _file_rows(pair, snapshot=snapshot, as_of=as_of)
        )
        found = pa.Table.from_pylist([*rows], schema).select(names)
        return Rows(found.schema, lambda: iter(found.to_batches()))


def _snapshot_rows(pair: LoadedPair) -> Iterator[dict[str, Any]]:
    for each in mixed_history(pair).snapshots:
        yield {
            "committed_at": each.time_millis,
            "position": str(each.position),
            "store": each.store,
            "snapshot_id": each.snapshot_id,
            "kind": each.commit_kind,
            "operation": each.operation,
        }


def _file_rows(
    pair: LoadedPair, *, snapshot: AnyPosition | None, as_of: Moment | None
) -> Iterator[dict[str, Any]]:
    state = find_state(pair, mixed_history(pair), snapshot=snapshot, as_of=as_of)
    for each in base_files(state.base, plan_files(state.base)):
        yield _file_row(BASE, each, None)
    for each in change_files(state.change, plan_files(state.change)):
        yield _file_row(CHANGE, each, each.sequence <= state.merged.sequence(each.partition))


def _file_row(store: str, file: StoreFile, is_merged: bool | None) -> dict[str, Any]:
    stored = file.split.file
    return {
        "store": store,
        "partition": file.partition,
        "node": str(file.node),
        "kind": file.kind.name.lower(),
        "transaction_id": file.transaction,
        "sequence_number": file.sequence,
        "is_merged": is_merged,
        "record_count": stored.record_count,
        "file_size_in_bytes": stored.size_bytes,
        "delete_files": len(file.split.deletes),
        "file_path": file.path,
    }

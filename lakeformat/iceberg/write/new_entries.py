# SPDX-License-Identifier: Apache-2.0
"""New files before a snapshot refers to them: as entries of a manifest, or deleted again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeformat.errors import LakeError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, entry_schema
from lakeformat.iceberg.types import StructType

__all__ = ["NewFile", "delete_files", "new_entries", "with_snapshot"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A durable file of rows, or of deletes of rows."""

    partition: pa.StructArray
    """The values of its partition: one row."""
    members: dict[str, Any]
    """The members of its entry that follow from its content."""


def new_entries(
    files: Sequence[NewFile],
    spec_id: int,
    partition: StructType,
    sort_order_id: int | None = None,
    *,
    content: int = DATA,
) -> pa.Table:
    """Return the entries of added files; they inherit the numbers of their snapshot."""
    schema = entry_schema(partition)
    same = {
        "status": ADDED,
        "spec_id": spec_id,
        "content": content,
        "file_format": "PARQUET",
        "sort_order_id": sort_order_id,
    }
    columns = {
        each.name: pa.array(
            [file.members.get(each.name, same.get(each.name)) for file in files], each.type
        )
        for each in schema
        if each.name != "partition"
    }
    kind = to_arrow_type(partition)
    parts = [file.partition.cast(kind) for file in files]
    columns["partition"] = pa.concat_arrays(parts) if parts else pa.array([], kind)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def with_snapshot(entries: pa.Table, snapshot_id: int) -> pa.Table:
    """Return new entries with the id of the snapshot that adds their files."""
    place = entries.schema.get_field_index("snapshot_id")
    ids = pa.repeat(pa.scalar(snapshot_id, pa.int64()), len(entries))
    return entries.set_column(place, entries.schema.field(place), ids)


def delete_files(places: FilePlaces, addresses: Iterable[str]) -> None:
    """Delete files that no snapshot refers to; one that cannot be deleted becomes an orphan."""
    for address in addresses:
        try:
            storage, path = places.place(address)
            storage.delete(path)
        except LakeError as reason:
            _log.warning(
                "could not delete the unpublished file %s: %s. No snapshot needs it: you can "
                "delete it",
                *(address, reason),
            )

# SPDX-License-Identifier: Apache-2.0
"""Makes manifest entries of new files, and deletes new files that are not published."""

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
from lakeformat.storage.shown import without_credentials
from lakeformat.types.sentence import sentence

__all__ = ["NewFile", "delete_files", "new_entries", "with_snapshot"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A new data file or delete file."""

    partition: pa.StructArray
    """The partition values, as an array of length one."""
    members: dict[str, Any]
    """The members of the manifest entry that depend on the content of the file."""


def new_entries(
    files: Sequence[NewFile],
    spec_id: int,
    partition: StructType,
    sort_order_id: int | None = None,
    *,
    content: int = DATA,
) -> pa.Table:
    """Return manifest entries of added files, which inherit the sequence number of their
    snapshot.
    """
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
    """Return the entries with the id of the snapshot that adds the files."""
    place = entries.schema.get_field_index("snapshot_id")
    ids = pa.repeat(pa.scalar(snapshot_id, pa.int64()), len(entries))
    return entries.set_column(place, entries.schema.field(place), ids)


def delete_files(places: FilePlaces, addresses: Iterable[str]) -> None:
    """Delete unpublished files.

    A file that cannot be deleted is logged, and becomes an orphan file.
    """
    for address in addresses:
        try:
            storage, path = places.place(address)
            storage.delete(path)
        except LakeError as reason:
            _log.warning(
                "could not delete the unpublished file %s: %s No snapshot needs it: you can "
                "delete it",
                *(without_credentials(address), sentence(reason)),
            )

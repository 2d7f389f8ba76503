# SPDX-License-Identifier: Apache-2.0
"""Compares the data files that Iceberg metadata names with the published files of a snapshot.

A reader may open any file that the metadata names, including a file that another program added to
the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_each
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.own_files import own_files
from lakeformat.publish.place import location_of_table
from lakeformat.publish.published_schemas import PublishedSchemas
from lakeformat.publish.visible_files import visible_files
from lakeformat.types.count_text import counted

__all__ = ["wrong_files"]


def wrong_files(handle: TableHandle, newest: LoadedMetadata, snapshot: Snapshot) -> str | None:
    """Return a message about wrong files in the Iceberg metadata; None if there are none.

    A data file is wrong if the metadata names it but ``snapshot`` does not publish it, or the other
    way round. An Iceberg delete file is wrong if another program wrote it.
    """
    data, deletes = _named(newest)
    expected = _published(handle, newest, snapshot)
    added = data.filter(pc.invert(pc.is_in(data, expected))).to_pylist()
    own = {*own_files(newest.metadata, deletes)}
    added += [each for each in deletes if each not in own]
    missing = expected.filter(pc.invert(pc.is_in(expected, data))).to_pylist()
    found = []
    if added:
        files = counted(len(added), "file")
        found.append(f"names {files} that the table does not publish, such as {added[0]}")
    if missing:
        files = counted(len(missing), "published file")
        found.append(f"does not name {files}, such as {missing[0]}")
    if not found:
        return None
    return (
        f"the Iceberg metadata {' and '.join(found)}: delete the directory "
        f"{newest.metadata.location.rstrip('/')}/metadata, then run `lake publish "
        f"{handle.argument}`, which publishes the table again, as another Iceberg table"
    )


def _named(newest: LoadedMetadata) -> tuple[pa.Array, list[str]]:
    """Return the URIs of the live data files and of the live delete files."""
    shown = newest.metadata.current_snapshot
    assert shown is not None
    manifests = read_manifest_list(newest.places, shown)
    is_data = pc.equal(manifests.column("content"), DATA)

    def live(some: pa.Table) -> Iterator[pa.Array]:
        yield pa.array([], pa.string())
        for _, entries in read_each(newest.places, newest.metadata, some, ()):
            yield from live_entries(entries).column("file_path").chunks

    data = pa.concat_arrays([*live(manifests.filter(is_data))])
    deletes = pa.concat_arrays([*live(manifests.filter(pc.invert(is_data)))])
    return data, deletes.to_pylist()


def _published(handle: TableHandle, newest: LoadedMetadata, snapshot: Snapshot) -> pa.Array:
    """Return the URIs of those files of a snapshot whose rows need no merge."""
    metadata = newest.metadata
    partition = partition_type(metadata, metadata.partition_specs[0])
    schemas = PublishedSchemas(handle, metadata.format_version)
    entries = FileEntries(handle, location_of_table(handle), partition, schemas.of)
    live = plan_columns(handle, snapshot).columns
    return entries.paths(live.filter(visible_files(handle.schema, live)))

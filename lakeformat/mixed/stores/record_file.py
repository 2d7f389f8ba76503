# SPDX-License-Identifier: Apache-2.0
"""Writes the record of merged changes to a statistics file of a base snapshot, as Amoro does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from lakeformat.environment import Environment
from lakeformat.errors import LakeError
from lakeformat.files.puffin import PuffinWriter
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.settings import data_location
from lakeformat.mixed.stores.optimized_sequences import MARK, SEQUENCES, TIMES, OptimizedSequences

__all__ = ["RECORD_MARKS", "delete_unused_records", "record_uri", "write_record"]

RECORD_MARKS = {f"{SEQUENCES}{MARK}": "true", f"{TIMES}{MARK}": "true"}
"""The marks in the summary of a base snapshot whose statistics file has the record."""


def record_uri(base: LoadedMetadata, snapshot: Snapshot, environment: Environment) -> str:
    """Return the URI of a new file for the record of a snapshot."""
    name = f"{snapshot.snapshot_id}-{environment.new_id()}.puffin"
    return f"{data_location(base.metadata)}/puffin/{name}"


def delete_unused_records(
    handle: TableHandle, records: Sequence[str], published: Snapshot | None
) -> None:
    """Delete the records of earlier attempts of a commit, if the metadata shows which record is in
    use.

    A failure is ignored: the files are then orphans.
    """
    if len(records) < 2 or published is None:
        return
    with suppress(LakeError):
        loaded = handle.load()
        used = {each.statistics_path for each in loaded.metadata.statistics}
        if loaded.metadata.snapshot(published.snapshot_id) is not None:
            delete_files(loaded.places, [each for each in records if each not in used])


def write_record(
    base: LoadedMetadata, snapshot: Snapshot, record: OptimizedSequences, uri: str
) -> StatisticsFile:
    """Write the record to a new Puffin file; return its entry in the metadata."""
    number, sequence = snapshot.snapshot_id, snapshot.sequence_number
    storage, path = base.places.place(uri)
    described = []
    with storage.open_output(path) as stream:
        writer = PuffinWriter(stream)
        for kind, numbers in ((SEQUENCES, record.sequences), (TIMES, record.times)):
            content = json.dumps(dict(numbers), separators=(",", ":"), ensure_ascii=False)
            writer.add(
                kind,
                content.encode(),
                fields=(),
                properties={},
                snapshot_id=number,
                sequence_number=sequence,
            )
            described.append(
                {"type": kind, "snapshot-id": number, "sequence-number": sequence, "fields": []}
            )
        footer = writer.finish({})
    return StatisticsFile(number, uri, writer.size, footer, tuple(described))

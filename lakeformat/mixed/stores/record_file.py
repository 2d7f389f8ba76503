# SPDX-License-Identifier: Apache-2.0
"""Writes the record of merged changes to a statistics file of a base snapshot, as Amoro does."""

from __future__ import annotations

import json

from lakeformat.files.puffin import PuffinWriter
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.mixed.stores.optimized_sequences import MARK, SEQUENCES, TIMES, OptimizedSequences

__all__ = ["RECORD_MARKS", "write_record"]

RECORD_MARKS = {f"{SEQUENCES}{MARK}": "true", f"{TIMES}{MARK}": "true"}
"""The members of the summary of a snapshot that has the record."""


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

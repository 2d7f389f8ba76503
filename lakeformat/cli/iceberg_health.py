# SPDX-License-Identifier: Apache-2.0
"""Formats the numbers that ``lake health`` prints about an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakeformat.cli.health_numbers import ages, held_bytes
from lakeformat.cli.output import Shown
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import IcebergHealthReport

__all__ = ["PARTITIONS", "iceberg_facts"]

PARTITIONS = (
    Shown("partition", "partition"),
    Shown("spec_id", "spec"),
    Shown("files", "files"),
    Shown("bytes", "size", size),
    Shown("rows", "rows"),
    Shown("small_files", "small files"),
    Shown("files_with_deletes", "with deletes"),
    Shown("delete_files", "delete files"),
)


def iceberg_facts(report: IcebergHealthReport) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each number of the report."""
    files, deletes, manifests = report.files, report.deletes, report.manifests
    snapshots, storage = report.snapshots, report.storage
    yield "files", f"{files.files} in {counted(files.partitions, 'partition')}"
    yield "small files", f"{files.small_files} with {size(files.small_bytes)}"
    kinds = (
        counted(deletes.position_delete_files, "position delete file"),
        counted(deletes.deletion_vectors, "deletion vector"),
        counted(deletes.equality_delete_files, "equality delete file"),
    )
    applied = f"on {counted(deletes.files_with_deletes, 'data file')}"
    yield "deletes", f"{', '.join(kinds)}, {applied}; dangling: {deletes.dangling_files}"
    yield "deleted rows", f"{deletes.hidden_rows} of {files.rows} ({deletes.ratio:.1%})"
    if deletes.equality_keys:
        yield "equality keys", f"{deletes.equality_keys:,}"
    every = manifests.data_manifests + manifests.delete_manifests
    yield "manifests", f"{every} with {size(manifests.bytes)}, {manifests.small_manifests} small"
    if snapshots.count:
        beyond = f"; {snapshots.overdue} beyond their retention" if snapshots.overdue else ""
        yield "snapshots", f"{snapshots.count}: {ages(snapshots)}{beyond}"
    if snapshots.metadata_files is not None:
        logged = f"{snapshots.logged_metadata_files} of them in use or in the metadata log"
        yield "metadata files", f"{snapshots.metadata_files}, {logged}"
    yield "bytes", held_bytes(storage)
    yield from (("note", note) for note in report.notes)

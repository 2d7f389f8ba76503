"""Plans a full scan of a table with many files; ``plan_peer.py`` compares with pypaimon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.question import Question
from benchmarks.sample_manifest import sample_handle, write_sample_table
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import live_files
from lakeformat.paimon.metadata.manifest_columns.read import decode_manifest_by_record
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.read.plan import plan_columns

__all__ = ["QUESTION"]

Names = Callable[[], set[str | None]]


def by_record(handle: TableHandle, _: Path) -> Callable[[], Names]:
    """Return a function that plans with an object for each entry, made when the entry is read."""

    def work() -> Names:
        storage, layout = handle.storage, handle.layout
        snapshot = read_snapshot(storage, layout, 1)
        entries = []
        for manifest in read_manifest_list(storage, layout, snapshot.base_manifest_list):
            content = storage.read(layout.manifest(manifest.file_name))
            entries += decode_manifest_by_record(content, manifest.file_name)
        files = live_files(entries, handle.uri)
        return lambda: {entry.file.file_name for entry in files}

    return work


def by_column(handle: TableHandle, _: Path) -> Callable[[], Names]:
    """Return a function that plans with columns, grouped by bucket."""

    def work() -> Names:
        plan = plan_columns(handle, read_snapshot(handle.storage, handle.layout, 1))
        plan.buckets()
        return lambda: set(plan.columns.file_name.texts())

    return work


def by_column_to_entries(handle: TableHandle, _: Path) -> Callable[[], Names]:
    """Return a function that plans with columns, and makes an object for every file at the end."""

    def work() -> Names:
        plan = plan_columns(handle, read_snapshot(handle.storage, handle.layout, 1))
        files = plan.entries()
        return lambda: {entry.file.file_name for entry in files}

    return work


QUESTION: Question[TableHandle, Names] = Question(
    sentence="How much faster are files planned by column than by record?",
    rows=100_000,
    make_data=lambda folder, rows: write_sample_table(folder, "keyed", rows, is_keyed=True),
    open_data=lambda folder: sample_handle(folder, "keyed", is_keyed=True),
    candidates={
        "record by record": by_record,
        "plan_columns": by_column,
        "plan_columns, entries": by_column_to_entries,
    },
    baseline="record by record",
    answer=lambda names: names(),
    targets={"plan_columns": 14.0},
)

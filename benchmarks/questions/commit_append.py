"""The latency of a commit: some storage calls, and little work besides."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.question import Question
from lakeformat.environment import SYSTEM
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.schema import new_schema
from lakeformat.storage import LocalStorage, Storage

__all__ = ["QUESTION", "empty_table", "message_of"]

FILES_PER_COMMIT = 100
_WRITTEN_BYTES = (2_500, 1_000, 1_500)
"""The approximate bytes of the manifest and the two lists of a commit."""

Work = Callable[[], int]


def write_count(folder: Path, commits: int) -> None:
    """Write the number of commits to a file. This question needs no other data."""
    (folder / "commits").write_text(str(commits))


def durable_files(commits: int, folder: Path) -> Work:
    """Return a function that writes as many durable files as a commit, but reads nothing: the
    floor.
    """
    storage = LocalStorage()

    def work() -> int:
        for number in range(commits):
            for size in _WRITTEN_BYTES:
                with storage.open_output(f"{folder}/manifest/{uuid.uuid4()}") as stream:
                    stream.write(bytes(size))
            assert storage.create(f"{folder}/snapshot/snapshot-{number}", bytes(900))
            storage.overwrite(f"{folder}/snapshot/LATEST", b"%d" % number)
        return commits

    return work


def commits_to(commits: int, folder: Path, *, files: int) -> Work:
    """Return a function that commits one file at a time to a table that already has ``files``
    files.
    """
    handle = empty_table(LocalStorage(), f"{folder}/orders")
    for _ in range(files // FILES_PER_COMMIT):
        commit_messages(handle, [message_of(FILES_PER_COMMIT)], CommitOptions())
    first = latest_snapshot(handle.storage, handle.layout)

    def work() -> int:
        for _ in range(commits):
            commit_messages(handle, [message_of(1)], CommitOptions())
        last = latest_snapshot(handle.storage, handle.layout)
        assert first is not None
        assert last is not None
        return last.id - first.id

    return work


def empty_table(storage: Storage, root: str) -> TableHandle:
    """Create a table in the directory ``root``, and return its handle."""
    layout = TableLayout(root)
    schema = new_schema([("id", "BIGINT")], options=None, comment=None, time_millis=0)
    assert create_schema(storage, layout, schema)
    return TableHandle(storage, layout, schema, SYSTEM)


def message_of(files: int) -> CommitMessage:
    """Return a message with files that do not exist, because a commit does not open them."""
    metas = tuple(
        DataFileMeta(
            file_name=f"data-{uuid.uuid4()}-0.parquet",
            file_size=1000,
            row_count=10,
            min_sequence_number=0,
            max_sequence_number=9,
            schema_id=0,
            file_source=FileSource.APPEND,
            delete_row_count=0,
        )
        for _ in range(files)
    )
    return CommitMessage(bucket=0, total_buckets=-1, new_files=metas)


QUESTION: Question[int, int] = Question(
    sentence="What does a commit cost beyond the durable files it writes?",
    rows=200,
    make_data=write_count,
    open_data=lambda folder: int((folder / "commits").read_text()),
    candidates={
        "five durable files": durable_files,
        "to 100 files": partial(commits_to, files=100),
        "to 10,000 files": partial(commits_to, files=10_000),
    },
    baseline="five durable files",
    answer=lambda commits: commits,
)

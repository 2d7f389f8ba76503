"""The writer of append tables: rows in, durable files and a commit message out."""

from __future__ import annotations

from typing import Any

from lakeformat.datafile.external_paths import external_paths
from lakeformat.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.datafile.file_names import DataFileNames
from lakeformat.datafile.rolling_writer import RollingWriter, WrittenFile
from lakeformat.errors import InvalidRequestError
from lakeformat.handle import UNAWARE_BUCKET, TableHandle, require_writable
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.data_file_meta import DataFileMeta, local_wall_clock
from lakeformat.write.batches import to_batches
from lakeformat.write.conform import Conformer

__all__ = ["AppendWriter"]

DATA_BUCKET = 0
"""Tables without buckets keep all files in this one."""


class AppendWriter:
    """Writes rows in the order given; used once, by one thread.

    Nothing is visible until the message of ``prepare`` is committed. As a context manager it
    removes its files when the block is left by an exception.
    """

    def __init__(self, handle: TableHandle, *, base_snapshot: int | None = None) -> None:
        require_writable(handle)
        self._handle = handle
        self._base_snapshot = base_snapshot
        self._conform = Conformer(handle.schema.fields)
        self._prepared = False
        self._files = RollingWriter(
            handle.storage,
            handle.layout.bucket_directory(DATA_BUCKET),
            handle.schema.fields,
            handle.options,
            DataFileNames(handle.options, handle.environment.new_id()).next_data,
            external=external_paths(
                handle.options,
                handle.layout.bucket_below_root(DATA_BUCKET),
                handle.storage,
                handle.environment.random_fraction,
            ),
        )

    def write(self, data: Any) -> None:
        """Add rows: a pyarrow, pandas or polars object, or an iterable of those."""
        self._require_unfinished()
        for batch in to_batches(data):
            self._files.write(self._conform(batch))

    def prepare(self) -> list[CommitMessage]:
        """Finish the files; the messages may be committed here or in another process."""
        self._require_unfinished()
        self._prepared = True
        files = self._files.finish()
        if not files:
            return []
        metas = self._describe(files)
        return [
            CommitMessage(
                bucket=DATA_BUCKET,
                total_buckets=UNAWARE_BUCKET,
                base_snapshot=self._base_snapshot,
                branch=self._handle.layout.branch,
                table=self._handle.uri,
                new_files=metas,
            )
        ]

    def abort(self) -> None:
        """Remove the files; only while nothing that refers to them may have been published."""
        self._prepared = True
        self._files.abort()

    def __enter__(self) -> AppendWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self.abort()

    def _require_unfinished(self) -> None:
        if self._prepared:
            raise InvalidRequestError("this writer is finished; take a new one for more rows")

    def _describe(self, files: list[WrittenFile]) -> tuple[DataFileMeta, ...]:
        handle = self._handle
        created = local_wall_clock(handle.environment.now_millis())
        origin = FileOrigin(handle.schema.id, created)
        metas, sequence = [], 0
        for file in files:
            metas.append(
                describe_append_file(
                    file,
                    handle.schema.fields,
                    origin,
                    first_sequence_number=sequence,
                    dense=handle.options.statistics_dense_store,
                )
            )
            sequence += file.row_count
        return tuple(metas)

# SPDX-License-Identifier: Apache-2.0
"""``$files``: every data file of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.file_format import format_of
from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.metadata.data_file_meta import FileSource
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn
from lakeformat.paimon.metadata.referrer import naming, naming_row
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.file_statistics import FileStatistics
from lakeformat.paimon.system_tables.live_files import LiveFiles
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.type_rules import is_text
from lakeformat.types.value_text import internal_text, join_texts

__all__ = ["FILES"]


class _SnapshotFiles(LiveFiles):
    """The live files of one snapshot, with the values that only ``$files`` shows."""

    @cached_property
    def statistics(self) -> FileStatistics:
        return FileStatistics(self.source, self.columns)

    def addresses(self) -> list[str]:
        """Return the URI of each file; on local disk the plain path, as in Paimon.

        Raise CorruptTableError for an invalid file name.
        """
        places = zip(
            self.texts("external_path"),
            self.partitions.indices.to_pylist(),
            self.columns.bucket.values(),
            self.texts("file_name"),
            strict=True,
        )
        for row, name in enumerate(self.texts("file_name")):
            if "/" in name:
                with naming(self.name(row, "_FILE_NAME")):
                    self.source.handle.layout.data_file(0, name)
        directory = cache(self._directory)
        storage = self.source.handle.storage
        is_local = storage.scheme == "file" and is_text(self.source.handle.layout.root)
        return [
            external or (path if is_local else storage.uri(path))
            for external, path in (
                (external, f"{directory(partition, bucket)}/{name}")
                for external, partition, bucket, name in places
            )
        ]

    def keys(self, member: str) -> list[str | None]:
        """Return the smallest or the largest key of each file as text; None for files without keys.

        ``member`` is ``min_key`` or ``max_key``.
        """

        def texts(files: ManifestColumns) -> list[str | None]:
            column: BytesColumn = getattr(files, member)
            return _key_texts(self.source, files, column)

        with self._naming(f"_{member.upper()}", texts):
            return texts(self.columns)

    def shown_statistics(self, show: Callable[[FileStatistics], pa.Array]) -> pa.Array:
        with self._naming("_VALUE_STATS", lambda files: show(FileStatistics(self.source, files))):
            return show(self.statistics)

    def _naming(
        self, what: str, again: Callable[[ManifestColumns], object]
    ) -> AbstractContextManager[None]:
        return naming_row(
            len(self),
            lambda row: again(self.columns.take(np.array([row]))),
            lambda row: self.name(row, what),
        )

    def formats(self) -> list[str]:
        return [_format(name.partition(".")[2]) for name in self.texts("file_name")]

    def sources(self) -> list[str | None]:
        """Return the kind of work that wrote each file: ``APPEND`` or ``COMPACT``.

        The kind is None if the manifest does not have it.
        """
        names = {int(source): source.name for source in FileSource}
        return [
            None if number is None else names.get(number, str(number))
            for number in self.columns.file_source.values()
        ]

    def _directory(self, partition: int, bucket: int) -> str:
        layout = self.source.handle.layout
        return layout.bucket_directory(bucket, self.partitions.distinct_directories[partition])


def _key_texts(source: Source, files: ManifestColumns, keys: BytesColumn) -> list[str | None]:
    """Return the keys as texts such as ``[2, b]``; None for files without a key."""
    shown: list[str | None] = [None] * len(files)
    has_key = keys.sizes > len(EMPTY_ROW)
    for schema_id in np.unique(files.schema_id.numbers[has_key]).tolist():
        rows = np.flatnonzero(has_key & (files.schema_id.numbers == schema_id))
        schema = source.schema(schema_id)
        types = [field.type for field in schema.key_fields or schema.fields]
        columns = decode_columns(keys.take(rows).to_arrow(), types)
        parts = [internal_text(column, type) for column, type in zip(columns, types, strict=True)]
        texts = join_texts(parts, rows=len(rows), brackets="[]").to_pylist()
        for row, text in zip(rows.tolist(), texts, strict=True):
            shown[row] = text
    return shown


@cache
def _format(ending: str) -> str:
    try:
        return format_of(f".{ending}", ending)
    except UnsupportedError:  # this version cannot read the format: show the suffix
        return ending.rpartition(".")[2]


def _number(name: str) -> Callable[[_SnapshotFiles], pa.Array]:
    return lambda files: files.numbers(name)


def _statistics(show: Callable[[FileStatistics], pa.Array]) -> Callable[[_SnapshotFiles], pa.Array]:
    return lambda files: files.shown_statistics(show)


FILES = declare(
    "files",
    _SnapshotFiles,
    [
        column("partition", "STRING", lambda files: files.partitions.in_braces()),
        column("bucket", "INT NOT NULL", _number("bucket")),
        column("file_path", "STRING NOT NULL", _SnapshotFiles.addresses),
        column("file_format", "STRING NOT NULL", _SnapshotFiles.formats),
        column("schema_id", "BIGINT NOT NULL", _number("schema_id")),
        column("level", "INT NOT NULL", _number("level")),
        column("record_count", "BIGINT NOT NULL", _number("row_count")),
        column("file_size_in_bytes", "BIGINT NOT NULL", _number("file_size")),
        column("min_key", "STRING", lambda files: files.keys("min_key")),
        column("max_key", "STRING", lambda files: files.keys("max_key")),
        column("null_value_counts", "STRING NOT NULL", _statistics(FileStatistics.null_counts)),
        column("min_value_stats", "STRING NOT NULL", _statistics(FileStatistics.least)),
        column("max_value_stats", "STRING NOT NULL", _statistics(FileStatistics.greatest)),
        column("min_sequence_number", "BIGINT", _number("min_sequence_number")),
        column("max_sequence_number", "BIGINT", _number("max_sequence_number")),
        column("creation_time", "TIMESTAMP(3)", _number("creation_time")),
        column("deleteRowCount", "BIGINT", _number("delete_row_count")),
        column("file_source", "STRING", _SnapshotFiles.sources),
        column("first_row_id", "BIGINT", _number("first_row_id")),
        column("write_cols", "ARRAY<STRING>", lambda files: files.texts("write_cols")),
    ],
    of_snapshot=True,
)

# SPDX-License-Identifier: Apache-2.0
"""Writes the data and changelog files of primary-key tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lakeformat.paimon.datafile.external_paths import ExternalPaths
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_key_value_file
from lakeformat.paimon.datafile.file_statistics import column_modes
from lakeformat.paimon.datafile.key_order import KeyOrder, Keys
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.datafile.system_fields import (
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    key_field,
)
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import Storage
from lakeformat.types.types import DataField

__all__ = ["KeyValueWriter"]


class KeyValueWriter:
    """Writes one sorted run, or one changelog, of a bucket; rows must be in the order of ``keys``.

    Batches have ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the table's columns, in this order and in
    the Arrow types of the table, as ``read_key_values`` returns them. If a call raises, all files
    of the writer are deleted.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        fields: tuple[DataField, ...],
        key_columns: Sequence[str],
        options: TableOptions,
        next_name: Callable[[], str],
        *,
        keys: Keys = Keys.ONCE,
        external: ExternalPaths | None = None,
    ) -> None:
        """Open no file yet; ``key_columns`` is the primary key without partition columns.

        ``options`` are those for a level or for changelogs; ``next_name`` returns the name of each
        file. ``keys`` is the order that rows must have.
        """
        by_name = {field.name: field for field in fields}
        self._fields = fields
        self._key_fields = tuple(by_name[name] for name in key_columns)
        self._options = options
        self._key_columns = () if options.data_file_thin_mode else tuple(key_columns)
        stored = (
            *(key_field(by_name[name]) for name in self._key_columns),
            SEQUENCE_NUMBER,
            VALUE_KIND,
            *fields,
        )
        names = [field.name for field in stored]
        in_place_of_keys = () if self._key_columns else key_columns
        self._files = RollingWriter(
            storage,
            directory,
            stored,
            options,
            next_name,
            modes=column_modes(names, options, key_columns=in_place_of_keys),
            key_order=KeyOrder(key_columns, keys),
            external=external,
            indexed=keys is Keys.ONCE,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the next rows; with the rows written before, they must be in the order ``keys``."""
        keys = [batch.column(name) for name in self._key_columns]
        names = [KEY_PREFIX + name for name in self._key_columns]
        stored = [*keys, *batch.columns]
        with self._leaving_nothing():
            self._files.write(
                pa.RecordBatch.from_arrays(stored, names=[*names, *batch.schema.names])
            )

    def finish(self, origin: FileOrigin) -> list[DataFileMeta]:
        """Close the last file, and return the manifest entries of all files.

        All files are durable then.
        """
        with self._leaving_nothing():
            files = self._files.finish()
        dense = self._options.statistics_dense_store
        return [
            describe_key_value_file(file, self._fields, self._key_fields, origin, dense=dense)
            for file in files
        ]

    def abort(self) -> None:
        """Delete all files of the writer; a file that cannot be deleted becomes an orphan."""
        self._files.abort()

    @contextmanager
    def _leaving_nothing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abort()
            raise

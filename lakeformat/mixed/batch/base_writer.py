# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of an overwrite to files of the base store, and checks that keys are unique.

Keys that do not fit into memory are compared in temporary files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.types import Field
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.write.changes import require_keys
from lakeformat.mixed.write.node_writer import NodeWriter
from lakeformat.rows.spill import SpillSettings
from lakeformat.tables.row_checks.repeated_values import RepeatedValues
from lakeformat.types.count_text import counted

__all__ = ["BASE_BUCKETS", "DEFAULT_BUCKETS", "BaseWriter", "RepeatedKeysError"]

BASE_BUCKETS = "base.file-index.hash-bucket"
"""The table property that sets into how many nodes (hash buckets) new base rows are divided."""
DEFAULT_BUCKETS = 4


class RepeatedKeysError(InvalidRequestError):
    """Rows of an overwrite have a key that occurs more than once."""

    def __init__(self, rows: int, examples: str, table: str) -> None:
        self.rows = rows
        """The number of rows with a repeated key."""
        self.examples = examples
        """Some of the keys, with the number of their rows."""
        self.table = table
        super().__init__(
            f"{counted(rows, 'new row')} of the overwrite of {table} have a key that occurs more "
            f"than once, such as {examples}. Nothing was published: keep one row of each key, or "
            "pass the rows to write() without overwrite, where the last row of a key counts"
        )

    def __reduce__(self) -> tuple[type[RepeatedKeysError], tuple[int, str, str]]:
        return type(self), (self.rows, self.examples, self.table)


class BaseWriter(NodeWriter):
    """Writes the rows of one overwrite; at the end call ``finish``, or ``discard`` after an
    error.
    """

    def __init__(
        self, base: LoadedMetadata, environment: Environment, key: Sequence[Field], transaction: int
    ) -> None:
        super().__init__(
            base,
            environment,
            key,
            int_property(base.metadata.properties, BASE_BUCKETS, DEFAULT_BUCKETS),
            option=BASE_BUCKETS,
            kind=FileKind.BASE,
            transaction=transaction,
        )
        self._table = base.places.uri
        self._names = [each.name for each in key]
        fields = {each.name: each for each in condition_fields(base.metadata.schema)}
        self._keys = RepeatedValues([fields[name] for name in self._names], SpillSettings())

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows.

        Raise ``InvalidRequestError`` if they do not fit the table, or if a key is null.
        """
        numbers = range(self._rows, self._rows + batch.num_rows)
        rows = self._given(batch, numbers)
        require_keys(rows, self._names, numbers)
        self._keys.add(rows)
        super().write(rows)

    def finish(self) -> pa.Table:
        """Write the remaining rows, and return the manifest entries of all files.

        Raise ``RepeatedKeysError`` if two rows share a key.
        """
        self._require_unique_keys()
        return super().finish()

    def discard(self) -> None:
        """Delete all files that this writer has written."""
        self._keys.discard()
        super().discard()

    def _require_unique_keys(self) -> None:
        found = self._keys
        found.finish()
        if found.repeated_rows:
            raise RepeatedKeysError(found.repeated_rows, "; ".join(found.examples), self._table)

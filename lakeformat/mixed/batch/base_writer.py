# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of an overwrite to files of the base store, and checks that keys are unique."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.types import Field
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.write.changes import require_keys
from lakeformat.mixed.write.node_writer import NodeWriter
from lakeformat.types.count_text import counted

__all__ = ["BASE_BUCKETS", "DEFAULT_BUCKETS", "BaseWriter"]

BASE_BUCKETS = "base.file-index.hash-bucket"
"""The table property with the number of nodes of new files of the base store."""
DEFAULT_BUCKETS = 4


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
        self._keys: list[pa.Table] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; raise ``InvalidRequestError`` if they do not fit the table, or have no key."""
        numbers = range(self._rows, self._rows + batch.num_rows)
        rows = self._given(batch, numbers)
        require_keys(rows, self._names, numbers)
        self._keys.append(pa.Table.from_batches([rows.select(self._names)]))
        super().write(rows)

    def finish(self) -> pa.Table:
        """Write the remaining rows, and return the manifest entries of all files; raise
        ``InvalidRequestError`` if two rows have one key.
        """
        self._require_unique_keys()
        return super().finish()

    def _require_unique_keys(self) -> None:
        if not self._keys:
            return
        keys = pa.concat_tables(self._keys).group_by(self._names)
        counts = keys.aggregate([([], "count_all")])
        several = counts.filter(pc.greater(counts.column("count_all"), 1))
        if not len(several):
            return
        [first] = several.slice(0, 1).to_pylist()
        shown = ", ".join(f"{name} = {first[name]!r}" for name in self._names)
        raise InvalidRequestError(
            f"{counted(len(several), 'key')} {'occurs' if len(several) == 1 else 'occur'} more "
            f"than once in the new rows of the overwrite of {self._table}, such as {shown} in "
            f"{first['count_all']} rows. Nothing was published: keep one row of each key, or pass "
            "the rows to batch.write(), where the last row of a key counts"
        )

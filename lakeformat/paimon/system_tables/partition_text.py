# SPDX-License-Identifier: Apache-2.0
"""Partitions as system tables show them; each distinct partition is decoded once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property

import pyarrow as pa

from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.metadata.referrer import naming_row
from lakeformat.paimon.partition import or_default_name, partition_fields, partition_path
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.value_text import cast_text, join_texts

__all__ = ["PartitionTexts"]


class PartitionTexts:
    """The partitions of rows as text, made of an array of framed binary rows."""

    def __init__(
        self, schema: TableSchema, partitions: pa.Array, name: Callable[[int], str]
    ) -> None:
        """Find the distinct partitions; each is decoded once, when its text is first needed.

        ``name`` returns, for an error message, a description of the partition at a position.
        """
        self._schema = schema
        self._name = name
        encoded = partitions.dictionary_encode()
        self.distinct: pa.Array = encoded.dictionary
        self.indices: pa.Array = encoded.indices
        """For each row, the position of its partition among the distinct partitions."""

    def in_braces(self) -> pa.Array:
        """Return the partition of each row as text, such as ``{a, 1}``.

        Without partition columns, the text is ``{}``.
        """
        return self.distinct_in_braces.take(self.indices)

    @cached_property
    def distinct_directories(self) -> list[str]:
        """Return the directory of each distinct partition, relative to the table."""
        rows = self.distinct.to_pylist()
        with self._naming(lambda row: partition_path(self._schema, rows[row])):
            return [partition_path(self._schema, row) for row in rows]

    @cached_property
    def distinct_in_braces(self) -> pa.Array:
        """Return ``{a, 1}`` for each distinct partition."""
        return join_texts(self._texts, rows=len(self.distinct), brackets="{}")

    @cached_property
    def distinct_as_path(self) -> list[str]:
        """Return each distinct partition as text, such as ``dt=a/h=1``.

        The values have no escapes, unlike in the name of a directory. Without partition columns,
        the texts are empty.
        """
        default = self._schema.table_options.partition_default_name
        keys = self._schema.partition_keys
        rows = zip(*(texts.to_pylist() for texts in self._texts), strict=True)
        if not keys:
            return [""] * len(self.distinct)
        return [
            "/".join(
                f"{key}={or_default_name(text, default)}"
                for key, text in zip(keys, row, strict=True)
            )
            for row in rows
        ]

    def _naming(self, again: Callable[[int], object]) -> AbstractContextManager[None]:
        return naming_row(
            len(self.distinct),
            again,
            lambda row: self._name(self.indices.to_pylist().index(row)),
        )

    @cached_property
    def _texts(self) -> list[pa.Array]:
        types = [field.type for field in partition_fields(self._schema)]
        with self._naming(lambda row: decode_columns(self.distinct.slice(row, 1), types)):
            columns = decode_columns(self.distinct, types)
        return [cast_text(column, type) for column, type in zip(columns, types, strict=True)]

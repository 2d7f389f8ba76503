# SPDX-License-Identifier: Apache-2.0
"""Formats partitions as Amoro's record of merged changes names them.

An example: ``p=x/op_time_day=2022-01-03``.
"""

from __future__ import annotations

from urllib.parse import quote_plus

import pyarrow as pa

from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.partition_text import partition_text
from lakeformat.iceberg.read.entry_columns import (
    partition_columns,
    plain_values,
    scopes,
    spec_of,
)
from lakeformat.iceberg.types import PrimitiveType

__all__ = ["partition_paths", "partition_values"]


def partition_paths(metadata: TableMetadata, entries: pa.Table) -> list[str]:
    """Return the partition of each entry as a path; the path is "" in a table without partitions.

    All entries have the same partition spec. Each distinct partition is formatted once.
    """
    spec = spec_of(metadata, entries)
    columns = partition_columns(entries)
    found: dict[str, str] = {}
    paths = []
    for row, scope in enumerate(scopes(entries)):
        if scope not in found:
            found[scope] = _path(metadata, spec, [column.slice(row, 1) for column in columns])
        paths.append(found[scope])
    return paths


def partition_values(entries: pa.Table) -> list[str]:
    """Return a text for each entry; two texts are equal only if the partitions are equal.

    A path does not distinguish a null from the text ``null``.
    """
    columns = [*map(plain_values, partition_columns(entries))]
    return [repr([column[row] for column in columns]) for row in range(len(entries))]


def _path(metadata: TableMetadata, spec: PartitionSpec, values: list[pa.Array]) -> str:
    parts = []
    kinds = partition_type(metadata, spec).fields
    for field, kind, value in zip(spec.fields, kinds, values, strict=True):
        assert isinstance(kind.type, PrimitiveType)
        text = partition_text(field.transform, kind.type, value)
        parts.append(f"{_escaped(field.name)}={_escaped(text)}")
    return "/".join(parts)


def _escaped(text: str) -> str:
    """Return the text as Java's ``URLEncoder`` writes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")

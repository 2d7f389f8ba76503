# SPDX-License-Identifier: Apache-2.0
"""Checks the keys of the rows of an Iceberg table.

The keys must be unique in each partition. If the name of a file states a node (a hash bucket), all
keys in the file must belong to this node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.mixed.key_hash import hash_keys
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.read.state import MixedState
from lakeformat.rows.spill import SpillSettings
from lakeformat.tables.row_checks.repeated_values import RepeatedValues
from lakeformat.types.count_text import counted

__all__ = ["check_existing_keys"]


def check_existing_keys(state: MixedState) -> int:
    """Check the keys of all rows, and return the number of rows.

    Only key columns are read, partition by partition, in bounded memory. Raise
    ``InvalidRequestError`` if a key is null, if rows of one partition share a key, or if a file has
    keys of other nodes than its name states.
    """
    names = [each.name for each in state.key]
    scan, rows = MixedScan(state, names, None), 0
    fields = {each.name: each for each in condition_fields(state.schema)}
    splits = sorted(scan.splits(), key=_partition)
    for _, of_partition in groupby(splits, key=_partition):
        found = RepeatedValues([fields[name] for name in names], SpillSettings())
        partition = ""
        for split in of_partition:
            partition = split.partition
            for batch in _checked_batches(state, scan, split):
                rows += batch.num_rows
                found.add(batch)
        found.finish()
        if found.repeated_rows:
            raise InvalidRequestError(
                f"{state.base.places.uri} cannot be adopted with the key {', '.join(names)}: "
                f"{counted(found.repeated_rows, 'row')}{_where(partition)} share their key with "
                f"another row, such as {'; '.join(found.examples[:2])}. Nothing was changed: "
                "keep only one row of each key, or choose another key"
            )
    return rows


def _partition(split: NodeSplit) -> str:
    return split.files[0].values


def _checked_batches(
    state: MixedState, scan: MixedScan, split: NodeSplit
) -> Iterator[pa.RecordBatch]:
    for batch in scan.read(split):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.null_count:
                raise InvalidRequestError(
                    f"{state.base.places.uri} cannot be adopted with the key column {name!r}: "
                    f"rows of {split.files[0].path} have a null in it. Nothing was changed: set "
                    "these values or delete these rows first, or choose another key"
                )
        _require_own_node(state, split, batch.columns)
        yield batch


def _require_own_node(state: MixedState, split: NodeSplit, columns: Sequence[pa.Array]) -> None:
    node = split.node
    if node.mask and ((hash_keys(state.key, columns) & node.mask) != node.index).any():
        raise InvalidRequestError(
            f"{state.base.places.uri} cannot be adopted with the key "
            f"{', '.join(each.name for each in state.key)}: an earlier Mixed table wrote "
            f"{split.files[0].path} for the hash bucket {node}, but with this key its rows belong "
            "to other hash buckets. So the earlier Mixed table had another key. Nothing was "
            "changed. First rewrite all files with table.compact(rewrite_all=True)"
        )


def _where(partition: str) -> str:
    return f" of partition {partition!r}" if partition else ""

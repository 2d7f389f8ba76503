# SPDX-License-Identifier: Apache-2.0
"""Refuses to overwrite the partitions of new rows if a partition field was renamed.

The files from before the rename are in the same partitions, but under another path. The overwrite
would keep these files. It would also record later deletes and updates of their rows as merged,
although no merge has applied them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.iceberg.write.publish import Base
from lakeformat.mixed.read.store_files import StoreFile, base_files

__all__ = ["refuse_renamed_partitions"]


def refuse_renamed_partitions(
    base: Base, changes: Iterable[StoreFile], values: Collection[str], touched: Collection[str]
) -> None:
    """Raise ``UnsupportedError`` if files of overwritten partitions would remain in an old path.

    The path of a partition changes when a partition field is renamed. ``changes`` are the files of
    unmerged changes that the overwrite does not replace. ``values`` are the values of the
    overwritten partitions, and ``touched`` their current paths.
    """
    metadata = base.loaded.metadata
    kept = [*changes]
    if _has_renamed_fields(metadata):
        state = TableState(base.loaded.places, metadata, base.parent, metadata.schema)
        kept += base_files(state, plan_files(state))
    for each in kept:
        if each.values in values and each.partition not in touched:
            raise UnsupportedError(
                f"the overwrite of {metadata.location} was not published, because a partition "
                "field was renamed: rows of an overwritten partition are also in "
                f"{each.partition!r}, from before the rename, and would remain. Pass "
                "overwrite='table' to replace all rows, or name the partitions by their columns, "
                "such as overwrite={'dt': '2024-01-31'}"
            )


def _has_renamed_fields(metadata: TableMetadata) -> bool:
    terms, names = set(), set()
    for spec in metadata.partition_specs:
        terms.add(tuple((each.source_ids, each.transform) for each in spec.fields))
        names.add(tuple((each.source_ids, each.transform, each.name) for each in spec.fields))
    return len(names) > len(terms)

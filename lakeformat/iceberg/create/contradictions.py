# SPDX-License-Identifier: Apache-2.0
"""The differences between a table and the description of a new one."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.iceberg.create.transform_terms import partition_text
from lakeformat.iceberg.metadata.partition_terms import partition_terms
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.credential_options import shown_option
from lakeformat.tables.wanted_table import WantedTable, difference

__all__ = ["contradictions"]


def contradictions(metadata: TableMetadata, key: Sequence[str], wanted: WantedTable) -> list[str]:
    """Return a text for each difference between a table and ``wanted``.

    ``wanted`` is the description of a new table, and ``key`` are the key columns of the existing
    table. Only the primary key, the partition fields and the options that ``wanted`` sets are
    compared; columns are not.
    """
    found = []
    if wanted.primary_key is not None and sorted(wanted.primary_key) != sorted(key):
        found.append(difference("primary_key", sorted(key), [*wanted.primary_key]))
    terms = partition_terms(metadata)
    if wanted.partition_by is not None and [*map(partition_text, wanted.partition_by)] != terms:
        found.append(difference("partition_by", terms, [*wanted.partition_by]))
    there = {**metadata.properties, "format-version": str(metadata.format_version)}
    return found + [
        difference(
            f"option {name!r}", shown_option(name, there.get(name)), shown_option(name, value)
        )
        for name, value in wanted.options.items()
        if there.get(name) != value
    ]

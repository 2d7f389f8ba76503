# SPDX-License-Identifier: Apache-2.0
"""Arguments of the common table interface that the operations of Iceberg tables refuse."""

from __future__ import annotations

from typing import Final

from lakeformat.tables.refused_arguments import RefusedArguments

__all__ = ["KIND", "REFUSED_ARGUMENTS"]

KIND = "an Iceberg table"
_NO_ORDER = (
    "an Iceberg table has no order of transactions: leave it out, or use a Mixed table, or a "
    "Paimon table with a primary key"
)
_OF_PAIMON = {
    "conflict": _NO_ORDER,
    "read_snapshot": "update and delete always start from the newest snapshot: leave it out",
}
REFUSED_ARGUMENTS: Final[RefusedArguments] = {
    "compact": {
        "buckets": "choose files with where or partitions",
        "idle": "choose partitions with where or partitions",
    },
    "delete": _OF_PAIMON,
    "expire_snapshots": {
        "retain_max": "pass retain_min and older_than, which together select the snapshots",
        "limit": "leave it out, because one commit expires all snapshots that are due",
    },
    "remove_orphans": {
        "external_paths": "leave it out, because only the directory of the table is searched",
        "executor": "leave out executor and engine='spark', because this process does the work",
    },
    "update": _OF_PAIMON,
    "write": {
        "kinds": "pass the rows and their kinds to table.upsert (`lake write --upsert-by`)",
        "conflict": _NO_ORDER,
        "watermark": "keep the event time in a column, or in properties",
        "where": "name the partitions to replace, or call delete(where) and append the rows",
        "read_snapshot": "this version does not compare the table with an earlier state: leave it "
        "out",
    },
}
"""For each operation: the refused arguments, each with what to do instead."""

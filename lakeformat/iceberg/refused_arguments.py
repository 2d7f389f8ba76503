# SPDX-License-Identifier: Apache-2.0
"""Arguments of the common table interface that the operations of Iceberg tables refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lakeformat.errors import UnsupportedError

__all__ = ["REFUSED_ARGUMENTS", "not_refused", "refuse_arguments"]

REFUSED_ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "compact": {
        "buckets": "choose files with where or partitions",
        "idle": "choose partitions with where or partitions",
    },
    "expire_snapshots": {
        "retain_max": "pass retain_min and older_than, which decide together",
        "limit": "leave it out, because one commit expires all snapshots that are due",
    },
    "remove_orphans": {
        "external_paths": "leave it out, because only the directory of the table is searched",
        "executor": "leave out executor and engine='spark', because this process does the work",
    },
    "write": {
        "kinds": "pass the rows and their kinds to upsert",
        "conflict": "an Iceberg table has no order of transactions: leave it out, or use a Paimon "
        "table with a primary key or a Mixed table",
        "watermark": "keep the event time in a column, or in properties",
        "read_snapshot": "this version does not compare the table with an earlier state: leave it "
        "out",
    },
}
"""For each operation: the refused arguments, and what to do instead of each."""


def not_refused(operation: str, given: Iterable[str]) -> list[str]:
    """Return the names in ``given`` that ``refuse_arguments`` does not know for the operation."""
    return [name for name in given if name not in REFUSED_ARGUMENTS[operation]]


def refuse_arguments(operation: str, given: Mapping[str, Any], table: str | None = None) -> None:
    """Raise ``UnsupportedError`` for the first refused argument in ``given`` that is not None."""
    for name, advice in REFUSED_ARGUMENTS[operation].items():
        if given.get(name) is not None:
            what = (
                f"{operation} of an Iceberg table"
                if table is None
                else f"{table} is an Iceberg table, whose {operation}"
            )
            raise UnsupportedError(f"{what} does not take {name}: {advice}")

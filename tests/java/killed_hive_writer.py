"""A process that appends one row to a table of a Hive metastore, and dies at a call of its commit.

    python -m tests.java.killed_hive_writer WAREHOUSE URI N

It dies before or after the N-th of the calls in ``CALLS``: an odd N is before a call.
"""

from __future__ import annotations

import sys

import pyarrow as pa
from hive_metastore.ThriftHiveMetastore import Client

import lakeformat as lake
from tests.crash.killed_process import die_at

__all__ = ["CALLS", "TABLE", "append", "open_catalog"]

CALLS = [(Client, name) for name in ("lock", "alter_table_with_environment_context", "unlock")]
"""The requests of a commit that change the metastore."""
TABLE = "shop.orders"


def open_catalog(warehouse: str, uri: str) -> lake.Catalog:
    """Open the catalog as each process does."""
    return lake.open_catalog(warehouse, format="iceberg", metastore="hive", uri=uri)


def append(warehouse: str, uri: str) -> None:
    """Append the row; a repetition finds the commit."""
    table = open_catalog(warehouse, uri).table(TABLE)
    table.write(pa.table({"id": [1]}), commit=lake.CommitId("killed", 1))


if __name__ == "__main__":
    with die_at(int(sys.argv[3]), CALLS):
        append(*sys.argv[1:3])

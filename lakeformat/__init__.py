"""Tables in the Apache Paimon format, from Python: write, commit and read.

import lakeformat as lake

catalog = lake.open_catalog("warehouse")
catalog.create_database("shop", exist_ok=True)
orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
"""

from lakeformat.catalog import Catalog, open_catalog
from lakeformat.commit.identity import CommitId
from lakeformat.commit.report import CommitReport
from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.options import TableOptions
from lakeformat.read.scan import Scan
from lakeformat.schema import TableSchema
from lakeformat.schema_changes import (
    SchemaChange,
    add_column,
    drop_column,
    remove_option,
    rename_column,
    set_option,
    update_column_comment,
    update_column_nullability,
    update_column_position,
    update_column_type,
    update_comment,
)
from lakeformat.system_tables import SystemScan
from lakeformat.table import SystemTable, Table, open_table
from lakeformat.write.append_writer import AppendWriter

__all__ = [
    "AlreadyExistsError",
    "AppendWriter",
    "Catalog",
    "CommitConflictError",
    "CommitId",
    "CommitKind",
    "CommitMessage",
    "CommitOutcomeUnknownError",
    "CommitReport",
    "CorruptTableError",
    "Environment",
    "InvalidRequestError",
    "LakeError",
    "NotFoundError",
    "Scan",
    "SchemaChange",
    "Snapshot",
    "SystemScan",
    "SystemTable",
    "Table",
    "TableOptions",
    "TableSchema",
    "UnavailableError",
    "UnsupportedError",
    "add_column",
    "drop_column",
    "open_catalog",
    "open_table",
    "remove_option",
    "rename_column",
    "set_option",
    "update_column_comment",
    "update_column_nullability",
    "update_column_position",
    "update_column_type",
    "update_comment",
]

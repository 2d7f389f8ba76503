"""Tables in the Apache Paimon format, from Python: write, commit and read.

import lakeformat as lake

catalog = lake.open_catalog("warehouse")
catalog.create_database("shop", exist_ok=True)
orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])

Errors are imported with the package. Names that need Arrow are imported on first use, so that
programs that never touch a table (`lake --help`, an Airflow scheduler) start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    BucketsChangedError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CommitUndecidableError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    LockUnavailableError,
    NotFoundError,
    SnapshotExpiredError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from lakeformat.catalog import Catalog, open_catalog
    from lakeformat.catalog.open_table import open_table
    from lakeformat.catalog.transfer.clone import clone_table
    from lakeformat.catalog.transfer.database import clone_database
    from lakeformat.catalog.transfer.migrate import migrate_directory
    from lakeformat.paimon.commit.commit_report import CommitReport
    from lakeformat.paimon.compact.compact_report import CompactReport
    from lakeformat.paimon.health import HealthReport
    from lakeformat.paimon.maintain import MaintainReport
    from lakeformat.paimon.metadata.commit_message import CommitMessage
    from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
    from lakeformat.paimon.options import TableOptions
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.paimon.schema import TableSchema
    from lakeformat.paimon.schema_changes.changes import (
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
    from lakeformat.paimon.system_tables import SystemScan
    from lakeformat.paimon.table import SystemTable, Table
    from lakeformat.paimon.write.table_writer import TableWriter
    from lakeformat.rows.conditions.predicate import col
    from lakeformat.tables.commit_id import CommitId

__all__ = [
    "AlreadyExistsError",
    "BucketsChangedError",
    "Catalog",
    "CommitConflictError",
    "CommitId",
    "CommitKind",
    "CommitMessage",
    "CommitOutcomeUnknownError",
    "CommitReport",
    "CommitUndecidableError",
    "CompactReport",
    "CorruptTableError",
    "Environment",
    "HealthReport",
    "InvalidRequestError",
    "LakeError",
    "LockUnavailableError",
    "MaintainReport",
    "NotFoundError",
    "Scan",
    "SchemaChange",
    "Snapshot",
    "SnapshotExpiredError",
    "SystemScan",
    "SystemTable",
    "Table",
    "TableOptions",
    "TableSchema",
    "TableWriter",
    "UnavailableError",
    "UnsupportedError",
    "add_column",
    "clone_database",
    "clone_table",
    "col",
    "drop_column",
    "migrate_directory",
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


# The same as the imports for type checkers; a test compares them.
_MODULE_OF = {
    "Catalog": "catalog",
    "CommitId": "tables.commit_id",
    "CommitKind": "paimon.metadata.snapshot",
    "CommitMessage": "paimon.metadata.commit_message",
    "CommitReport": "paimon.commit.commit_report",
    "CompactReport": "paimon.compact.compact_report",
    "HealthReport": "paimon.health",
    "MaintainReport": "paimon.maintain",
    "Scan": "paimon.read.scan",
    "SchemaChange": "paimon.schema_changes.changes",
    "Snapshot": "paimon.metadata.snapshot",
    "SystemScan": "paimon.system_tables",
    "SystemTable": "paimon.table",
    "Table": "paimon.table",
    "TableOptions": "paimon.options",
    "TableSchema": "paimon.schema",
    "TableWriter": "paimon.write.table_writer",
    "add_column": "paimon.schema_changes.changes",
    "clone_database": "catalog.transfer.database",
    "clone_table": "catalog.transfer.clone",
    "col": "rows.conditions.predicate",
    "drop_column": "paimon.schema_changes.changes",
    "migrate_directory": "catalog.transfer.migrate",
    "open_catalog": "catalog",
    "open_table": "catalog.open_table",
    "remove_option": "paimon.schema_changes.changes",
    "rename_column": "paimon.schema_changes.changes",
    "set_option": "paimon.schema_changes.changes",
    "update_column_comment": "paimon.schema_changes.changes",
    "update_column_nullability": "paimon.schema_changes.changes",
    "update_column_position": "paimon.schema_changes.changes",
    "update_column_type": "paimon.schema_changes.changes",
    "update_comment": "paimon.schema_changes.changes",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Tables in the Apache Paimon format, from Python: write, commit and read.

import lakeformat as lake

catalog = lake.open_catalog("warehouse")
catalog.create_database("shop", exist_ok=True)
orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])

Errors are here at once; what needs Arrow is loaded when it is first asked for, because a program
that only looks (`lake --help`, an Airflow scheduler) should not wait for it.
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
    from lakeformat.commit.identity import CommitId
    from lakeformat.commit.report import CommitReport
    from lakeformat.compact.report import CompactReport
    from lakeformat.health import HealthReport
    from lakeformat.maintain import MaintainReport
    from lakeformat.metadata.commit_message import CommitMessage
    from lakeformat.metadata.snapshot import CommitKind, Snapshot
    from lakeformat.options import TableOptions
    from lakeformat.read.conditions.predicate import col
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
    from lakeformat.transfer.clone import clone_table
    from lakeformat.transfer.database import clone_database
    from lakeformat.transfer.migrate import migrate_directory
    from lakeformat.write.table_writer import TableWriter

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
    "CommitId": "commit.identity",
    "CommitKind": "metadata.snapshot",
    "CommitMessage": "metadata.commit_message",
    "CommitReport": "commit.report",
    "CompactReport": "compact.report",
    "HealthReport": "health",
    "MaintainReport": "maintain",
    "Scan": "read.scan",
    "SchemaChange": "schema_changes",
    "Snapshot": "metadata.snapshot",
    "SystemScan": "system_tables",
    "SystemTable": "table",
    "Table": "table",
    "TableOptions": "options",
    "TableSchema": "schema",
    "TableWriter": "write.table_writer",
    "add_column": "schema_changes",
    "clone_database": "transfer.database",
    "clone_table": "transfer.clone",
    "col": "read.conditions.predicate",
    "drop_column": "schema_changes",
    "migrate_directory": "transfer.migrate",
    "open_catalog": "catalog",
    "open_table": "table",
    "remove_option": "schema_changes",
    "rename_column": "schema_changes",
    "set_option": "schema_changes",
    "update_column_comment": "schema_changes",
    "update_column_nullability": "schema_changes",
    "update_column_position": "schema_changes",
    "update_column_type": "schema_changes",
    "update_comment": "schema_changes",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

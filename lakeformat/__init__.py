# SPDX-License-Identifier: Apache-2.0
"""Read and write tables in the formats Apache Paimon, Apache Iceberg and Mixed from Python.

import lakeformat as lake

catalog = lake.open_catalog("warehouse")
catalog.create_database("shop", exist_ok=True)
orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])

Errors and ``Environment`` are imported with the package, all other names on first use. So programs
that never touch a table (`lake --help`, an Airflow scheduler) start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lakeformat.environment import Environment
from lakeformat.errors import (
    AccessDeniedError,
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
    TableReplacedError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from lakeformat.catalog import Catalog, open_catalog
    from lakeformat.catalog.iceberg import IcebergCatalog
    from lakeformat.catalog.open_table import open_table
    from lakeformat.catalog.repair_report import RepairReport
    from lakeformat.catalog.transfer.clone import clone_table
    from lakeformat.catalog.transfer.database import clone_database
    from lakeformat.catalog.transfer.migrate import migrate_directory
    from lakeformat.catalog.transfer.transfer_reports import CloneReport, MigrateReport
    from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
    from lakeformat.iceberg.health import IcebergHealthReport
    from lakeformat.iceberg.table import IcebergTable
    from lakeformat.mixed.batch.batch import MixedBatch
    from lakeformat.mixed.table import MixedTable
    from lakeformat.paimon.analyze.analyze_report import AnalyzeReport
    from lakeformat.paimon.commit.commit_report import CommitReport
    from lakeformat.paimon.compact.compact_report import CompactReport
    from lakeformat.paimon.compact.other_compactor import OtherCompactor
    from lakeformat.paimon.compact.rescaling.rescale_report import RescaleReport
    from lakeformat.paimon.compact.unit import CompactPlan
    from lakeformat.paimon.consumers import ConsumerReport
    from lakeformat.paimon.expire import ExpireReport
    from lakeformat.paimon.file_indexes.file_index_report import FileIndexReport
    from lakeformat.paimon.health import HealthReport
    from lakeformat.paimon.metadata.commit_message import CommitMessage
    from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
    from lakeformat.paimon.options import TableOptions
    from lakeformat.paimon.orphans.hints import RepairHintsReport
    from lakeformat.paimon.orphans.missing import MissingFilesReport
    from lakeformat.paimon.orphans.missing_manifests import MissingManifestsReport
    from lakeformat.paimon.partitions.live import LivePartition
    from lakeformat.paimon.partitions.partition_reports import (
        ExpirePartitionsReport,
        MarkDoneReport,
    )
    from lakeformat.paimon.read.changes.changes import Changes
    from lakeformat.paimon.read.changes.snapshot_change import SnapshotChange
    from lakeformat.paimon.read.changes.streaming import ChangeStream
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
    from lakeformat.paimon.tags.automatic import AutomaticTagsReport
    from lakeformat.paimon.write.table_writer import TableWriter
    from lakeformat.publish.check.check import check_publication
    from lakeformat.publish.check.report import PublicationCheckReport, ReaderCheck
    from lakeformat.publish.lag import publication_lag
    from lakeformat.publish.publish import publish_table
    from lakeformat.publish.report import PublishReport
    from lakeformat.rows.conditions.predicate import col
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_manifests_report import CompactManifestsReport
    from lakeformat.tables.compact_progress import CompactProgress
    from lakeformat.tables.lookup.lookup import Lookup
    from lakeformat.tables.maintain import MaintainProgress, MaintainReport
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.position import Position
    from lakeformat.tables.reference_reports import (
        BranchReport,
        DeletionReport,
        FastForwardReport,
        RollbackReport,
        TagReport,
    )
    from lakeformat.tables.removal import Removal
    from lakeformat.tables.row_change_report import RowChangeReport
    from lakeformat.tables.row_checks import CheckReport
    from lakeformat.tables.run_record import RunRecord
    from lakeformat.tables.staged.discard_report import DiscardReport
    from lakeformat.tables.staged.files import StagedResult

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "AnalyzeReport",
    "AutomaticTagsReport",
    "BranchReport",
    "BucketsChangedError",
    "Catalog",
    "ChangeStream",
    "Changes",
    "CheckReport",
    "CloneReport",
    "CommitConflictError",
    "CommitId",
    "CommitKind",
    "CommitMessage",
    "CommitOutcomeUnknownError",
    "CommitReport",
    "CommitUndecidableError",
    "CompactManifestsReport",
    "CompactPlan",
    "CompactProgress",
    "CompactReport",
    "ConsumerReport",
    "CorruptTableError",
    "DeletionReport",
    "DiscardReport",
    "Environment",
    "ExpirePartitionsReport",
    "ExpireReport",
    "FastForwardReport",
    "FileIndexReport",
    "HealthReport",
    "IcebergCatalog",
    "IcebergExpireReport",
    "IcebergHealthReport",
    "IcebergTable",
    "InvalidRequestError",
    "LakeError",
    "LivePartition",
    "LockUnavailableError",
    "Lookup",
    "MaintainProgress",
    "MaintainReport",
    "MarkDoneReport",
    "MigrateReport",
    "MissingFilesReport",
    "MissingManifestsReport",
    "MixedBatch",
    "MixedTable",
    "NotFoundError",
    "OrphanReport",
    "OtherCompactor",
    "Position",
    "PublicationCheckReport",
    "PublishReport",
    "ReaderCheck",
    "Removal",
    "RepairHintsReport",
    "RepairReport",
    "RescaleReport",
    "RollbackReport",
    "RowChangeReport",
    "RunRecord",
    "Scan",
    "SchemaChange",
    "Snapshot",
    "SnapshotChange",
    "SnapshotExpiredError",
    "StagedResult",
    "SystemScan",
    "SystemTable",
    "Table",
    "TableOptions",
    "TableReplacedError",
    "TableSchema",
    "TableWriter",
    "TagReport",
    "UnavailableError",
    "UnsupportedError",
    "add_column",
    "check_publication",
    "clone_database",
    "clone_table",
    "col",
    "drop_column",
    "migrate_directory",
    "open_catalog",
    "open_table",
    "publication_lag",
    "publish_table",
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
    "AnalyzeReport": "paimon.analyze.analyze_report",
    "AutomaticTagsReport": "paimon.tags.automatic",
    "BranchReport": "tables.reference_reports",
    "Catalog": "catalog",
    "ChangeStream": "paimon.read.changes.streaming",
    "Changes": "paimon.read.changes.changes",
    "CheckReport": "tables.row_checks",
    "CloneReport": "catalog.transfer.transfer_reports",
    "CommitId": "tables.commit_id",
    "CommitKind": "paimon.metadata.snapshot",
    "CommitMessage": "paimon.metadata.commit_message",
    "CommitReport": "paimon.commit.commit_report",
    "CompactManifestsReport": "tables.compact_manifests_report",
    "CompactPlan": "paimon.compact.unit",
    "CompactProgress": "tables.compact_progress",
    "CompactReport": "paimon.compact.compact_report",
    "ConsumerReport": "paimon.consumers",
    "DeletionReport": "tables.reference_reports",
    "DiscardReport": "tables.staged.discard_report",
    "ExpirePartitionsReport": "paimon.partitions.partition_reports",
    "ExpireReport": "paimon.expire",
    "FastForwardReport": "tables.reference_reports",
    "FileIndexReport": "paimon.file_indexes.file_index_report",
    "HealthReport": "paimon.health",
    "IcebergCatalog": "catalog.iceberg",
    "IcebergExpireReport": "iceberg.expire.expire_report",
    "IcebergHealthReport": "iceberg.health",
    "IcebergTable": "iceberg.table",
    "LivePartition": "paimon.partitions.live",
    "Lookup": "tables.lookup.lookup",
    "MaintainProgress": "tables.maintain",
    "MaintainReport": "tables.maintain",
    "MarkDoneReport": "paimon.partitions.partition_reports",
    "MigrateReport": "catalog.transfer.transfer_reports",
    "MissingFilesReport": "paimon.orphans.missing",
    "MissingManifestsReport": "paimon.orphans.missing_manifests",
    "MixedBatch": "mixed.batch.batch",
    "MixedTable": "mixed.table",
    "OrphanReport": "tables.orphan_report",
    "OtherCompactor": "paimon.compact.other_compactor",
    "Position": "tables.position",
    "PublicationCheckReport": "publish.check.report",
    "PublishReport": "publish.report",
    "ReaderCheck": "publish.check.report",
    "Removal": "tables.removal",
    "RepairHintsReport": "paimon.orphans.hints",
    "RepairReport": "catalog.repair_report",
    "RescaleReport": "paimon.compact.rescaling.rescale_report",
    "RollbackReport": "tables.reference_reports",
    "RowChangeReport": "tables.row_change_report",
    "RunRecord": "tables.run_record",
    "Scan": "paimon.read.scan",
    "SchemaChange": "paimon.schema_changes.changes",
    "Snapshot": "paimon.metadata.snapshot",
    "SnapshotChange": "paimon.read.changes.snapshot_change",
    "StagedResult": "tables.staged.files",
    "SystemScan": "paimon.system_tables",
    "SystemTable": "paimon.table",
    "Table": "paimon.table",
    "TableOptions": "paimon.options",
    "TableSchema": "paimon.schema",
    "TableWriter": "paimon.write.table_writer",
    "TagReport": "tables.reference_reports",
    "add_column": "paimon.schema_changes.changes",
    "check_publication": "publish.check.check",
    "clone_database": "catalog.transfer.database",
    "clone_table": "catalog.transfer.clone",
    "col": "rows.conditions.predicate",
    "drop_column": "paimon.schema_changes.changes",
    "migrate_directory": "catalog.transfer.migrate",
    "open_catalog": "catalog",
    "open_table": "catalog.open_table",
    "publication_lag": "publish.lag",
    "publish_table": "publish.publish",
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

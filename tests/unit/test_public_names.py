"""The public names: this list is the promise to users, changing it is a decision."""

from __future__ import annotations

import inspect

import lakeformat as lake

PROMISED = [
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
    "MaintainProgress",
    "MaintainReport",
    "MarkDoneReport",
    "MigrateReport",
    "MissingFilesReport",
    "MissingManifestsReport",
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


def test_the_public_names_are_exactly_these():
    assert lake.__all__ == PROMISED


def test_every_public_name_and_method_says_what_it_is_for():
    for name in PROMISED:
        item = getattr(lake, name)
        assert inspect.getdoc(item), name
        for method, value in vars(item).items() if inspect.isclass(item) else ():
            if not method.startswith("_") and inspect.isfunction(value):
                assert inspect.getdoc(value), f"{name}.{method}"

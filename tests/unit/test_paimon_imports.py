"""Jobs, commands and the provider import few modules of the Paimon wing, and no further ones.

The goal is twenty. Take a module out of the list when its last importer uses a method of ``Table``,
a public name or a shared room instead.
"""

from __future__ import annotations

from tests.unit.test_import_direction import ROOT, read_edges

MAY_BE_IMPORTED = {
    "aggregate_rules",
    "bucketing",
    "compact.changelogs.producers",
    "compact.compact_report",
    "compact.other_compactor",
    "compact.partition_choice",
    "compact.rescaling.rescale_report",
    "compact.unit",
    "consumers",
    "deletion",
    "expire",
    "handle",
    "health.health_report",
    "layout",
    "maintain",
    "maintain.steps",
    "metadata.file_name_part",
    "metadata.schema_file",
    "metadata.staged_result",
    "options.kinds",
    "orphans.missing",
    "orphans.orphan_report",
    "partition_filter",
    "partitions.live",
    "partitions.time_format",
    "read.changes.changes",
    "read.changes.rows",
    "read.changes.snapshot_change",
    "read.changes.streaming",
    "read.changes.window",
    "read.plain_files",
    "read.results",
    "read.rows",
    "read.splits",
    "read.time_travel",
    "read.where",
    "rollback.rollback_report",
    "row_changes.row_change_report",
    "staged",
    "system_tables.registry",
    "table",
    "tags.exclusive_files",
    "tags.tag_report",
    "write.assign",
    "write.batches",
    "write.checked_rows",
    "write.input_columns",
    "write.passthrough_columns",
    "write.repeated_values",
    "write.row_kinds",
    "write.spill_directory",
}
IMPORTERS = ("airflow_provider_lake", "dags", "lakeformat.cli", "spark_jobs")
WING = "lakeformat.paimon."


def test_no_further_module_of_the_wing_is_imported_from_above():
    found = [
        str(edge)
        for edge in read_edges(ROOT)
        if edge.importer.startswith(IMPORTERS)
        and edge.imported.startswith(WING)
        and edge.imported.removeprefix(WING) not in MAY_BE_IMPORTED
    ]
    assert not found, (
        "use a method of Table, a name of lakeformat or a shared room instead:\n" + "\n".join(found)
    )


def test_the_list_only_becomes_shorter():
    assert len(MAY_BE_IMPORTED) <= 51

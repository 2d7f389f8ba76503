# SPDX-License-Identifier: Apache-2.0
"""Reports the tables of an operator to OpenLineage before the work, and again after it, with their
new state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_lake.assets.uri import TableAddress, split_table_name

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import InputDataset, OutputDataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    from lakeformat import Table
    from lakeformat.types.types import DataType

__all__ = ["LakeLineageMixin"]


class LakeLineageMixin:
    """Reports the lineage of an operator that has ``table``, ``lake_conn_id``, and its result in
    ``published``.

    A task on several tables has ``table=None``, and reports no lineage.

    A table that does not exist yet is reported without facets.

    Only Airflow's OpenLineage provider calls these methods. It may not be installed, so it is
    imported inside functions, not at the top of the module.
    """

    if TYPE_CHECKING:
        table: Any
        lake_conn_id: str

    published: Mapping[str, Any] | None = None
    """The result of the job; None before the job ends."""
    reads_only: ClassVar[bool] = False
    """True if the task only reads ``table``."""

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Return the lineage before the work: the tables that the task will read or change."""
        return self._lineage({})

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Return the lineage after the work: the table in its new state, and the tables read.

        The table has its columns, its new version, and the numbers of written rows, files and
        bytes. For a task that only reads, the table has its columns and the outcomes of its checks.
        """
        return self._lineage(self.published or {})

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Return the lineage of a failed task: the table in its current state. For a task that only
        reads, the lineage also has the outcomes of its checks.
        """
        return self._lineage((self.published or {}) if self.reads_only else {})

    def _tables_read(self) -> list[str]:
        """Return the names of the lake tables that the task reads, without its own table."""
        return []

    def _lineage(self, result: Mapping[str, Any]) -> OperatorLineage[Any, Any]:
        from airflow.providers.common.compat.openlineage.facet import OutputDataset
        from airflow.providers.openlineage.extractors import OperatorLineage

        if self.table is None:
            return OperatorLineage()
        if self.reads_only:
            checked = self._read_dataset(self.table)
            checked.inputFacets = _assertions(result)
            return OperatorLineage(inputs=[checked])
        address = TableAddress(*split_table_name(self.table), self.lake_conn_id)
        namespace, name = _dataset_of(address)
        output = OutputDataset(namespace=namespace, name=name)
        if (table := _opened(address)) is not None:
            _describe(output, table, result)
        inputs = [self._read_dataset(name) for name in self._tables_read()]
        return OperatorLineage(inputs=inputs, outputs=[output])

    def _read_dataset(self, table_name: str) -> InputDataset:
        from airflow.providers.common.compat.openlineage.facet import InputDataset

        address = TableAddress(*split_table_name(table_name), self.lake_conn_id)
        namespace, name = _dataset_of(address)
        read = InputDataset(namespace=namespace, name=name)
        if (table := _opened(address)) is not None:
            read.facets = {"schema": _columns(table)}
        return read


def _dataset_of(address: TableAddress) -> tuple[str, str]:
    """Return OpenLineage's namespace and name of a table."""
    from airflow_provider_lake.assets.openlineage import dataset_name, location_of

    return dataset_name(location_of(address))


def _assertions(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facet with the outcomes of checks; empty if the result has none."""
    from openlineage.client.generated.data_quality_assertions_dataset import (
        Assertion,
        DataQualityAssertionsDatasetFacet,
    )

    checks = (result.get("report") or {}).get("checks")
    if checks is None:
        return {}
    found = []
    for check in checks:
        kind = check["name"].partition("(")[0]
        is_on_column = check["name"] in [f"{kind}({name})" for name in check["columns"]]
        found.append(
            Assertion(
                assertion=kind if is_on_column else check["name"],
                success=check["outcome"] == "passed",
                column=check["columns"][0] if is_on_column else None,
            )
        )
    return {"dataQualityAssertions": DataQualityAssertionsDatasetFacet(assertions=found)}


def _opened(address: TableAddress) -> Table | None:
    from airflow_provider_lake.hooks.lake import LakeHook
    from lakeformat import NotFoundError

    try:
        return LakeHook(address.lake_conn_id).get_conn().table(address.name)
    except NotFoundError:
        return None


def _columns(table: Table) -> Any:
    from airflow.providers.common.compat.openlineage.facet import SchemaDatasetFacet

    fields = table.schema.fields
    return SchemaDatasetFacet(
        fields=[_column(field.name, field.type, field.description) for field in fields]
    )


def _column(name: str, kind: DataType, description: str | None = None) -> Any:
    """Return an OpenLineage column with the name of its type. The fields inside nested columns have
    the names that OpenLineage's Spark integration gives them.
    """
    from airflow.providers.common.compat.openlineage.facet import SchemaDatasetFacetFields

    from lakeformat.types.type_text import type_to_json
    from lakeformat.types.types import AtomicType, MapType, RowType, with_nullability

    written = type_to_json(with_nullability(kind, nullable=True))
    if isinstance(kind, AtomicType):
        return SchemaDatasetFacetFields(name=name, type=written, description=description)
    if isinstance(kind, RowType):
        parts = [_column(field.name, field.type, field.description) for field in kind.fields]
    elif isinstance(kind, MapType):
        parts = [_column("key", kind.key), _column("value", kind.value)]
    else:
        parts = [_column("_element", kind.element)]
    return SchemaDatasetFacetFields(
        name=name, type=written["type"], description=description, fields=parts
    )


def _describe(output: OutputDataset, table: Table, result: Mapping[str, Any]) -> None:
    from airflow.providers.common.compat.openlineage.facet import OutputStatisticsOutputDatasetFacet
    from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet

    output.facets = {"schema": _columns(table)}
    version = result.get("snapshot_id")
    if version is None:
        return
    output.facets["version"] = DatasetVersionDatasetFacet(datasetVersion=str(version))
    report = result.get("report") or {}
    rows = report.get("rows", report.get("rows_out"))
    size = report.get("bytes", report.get("bytes_out"))
    files = report.get("files", report.get("files_out"))
    if files is not None:  # an analysis writes no files: it counts existing rows
        output.outputFacets = {
            "outputStatistics": OutputStatisticsOutputDatasetFacet(
                rowCount=rows, size=size, fileCount=files
            )
        }

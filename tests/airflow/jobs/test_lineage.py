"""OpenLineage facets: where a table lies, its columns, its version and what was written."""

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.lineage import LakeLineageMixin
from airflow_provider_lake.operators.analyze import LakeAnalyzeOperator
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException

pytest.importorskip(
    "airflow.providers.openlineage",
    reason="needs apache-airflow-providers-openlineage, which is no dependency",
)


class Land(LakeLineageMixin):
    table = "shop.orders"
    lake_conn_id = "lake_default"


def test_before_a_table_exists_it_has_a_name_alone(warehouse):
    [output] = Land().get_openlineage_facets_on_start().outputs

    assert (output.namespace, output.name) == ("file", f"{warehouse}/shop.db/orders")
    assert output.facets == {}


def test_afterwards_it_has_columns_a_version_and_statistics(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
    report = orders.write(pa.table({"id": [1, 2], "note": ["a", None]}))
    land = Land()
    land.published = {"snapshot_id": report.snapshot_id, "report": report.to_dict()}

    [output] = land.get_openlineage_facets_on_complete(None).outputs

    assert [field.name for field in output.facets["schema"].fields] == ["id", "note"]
    assert output.facets["version"].datasetVersion == "1"
    statistics = output.outputFacets["outputStatistics"]
    assert (statistics.rowCount, statistics.fileCount) == (2, 1)


def test_columns_are_told_with_the_names_of_their_types(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    columns = [
        ("id", "BIGINT NOT NULL"),
        ("price", "DECIMAL(10, 2)"),
        ("tags", "ARRAY<STRING>"),
        ("sizes", "MAP<STRING, INT>"),
        ("maker", "ROW<name STRING, since DATE>"),
    ]
    catalog.create_table("shop.orders", columns)

    [output] = Land().get_openlineage_facets_on_start().outputs

    def told(fields):
        return [
            (field.name, field.type, *map(told, filter(None, [field.fields]))) for field in fields
        ]

    assert told(output.facets["schema"].fields) == [
        ("id", "BIGINT"),
        ("price", "DECIMAL(10, 2)"),
        ("tags", "ARRAY", [("_element", "STRING")]),
        ("sizes", "MAP", [("key", "STRING"), ("value", "INT")]),
        ("maker", "ROW", [("name", "STRING"), ("since", "DATE")]),
    ]


def test_an_analysis_has_a_version_and_has_written_nothing(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1, 2]}))
    task = LakeAnalyzeOperator(task_id="analyze", table="shop.orders", columns="all")
    task.execute(task_context())

    [output] = task.get_openlineage_facets_on_complete(None).outputs

    assert output.facets["version"].datasetVersion == "2"
    assert not output.outputFacets


def test_a_table_that_rows_come_from_is_an_input_with_its_columns(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.raw", [("id", "BIGINT")])
    task = LakeIngestOperator(
        task_id="land", table="shop.orders", source_table="shop.raw", consumer="job", create=True
    )

    [read] = task.get_openlineage_facets_on_start().inputs

    assert (read.namespace, read.name) == ("file", f"{warehouse}/shop.db/raw")
    assert [field.name for field in read.facets["schema"].fields] == ["id"]
    assert Land().get_openlineage_facets_on_start().inputs == []


def test_a_failure_tells_no_version(warehouse):
    [output] = Land().get_openlineage_facets_on_failure(None).outputs
    assert "version" not in output.facets


def test_an_asset_is_the_same_dataset(warehouse):
    from airflow_provider_lake.assets.openlineage import to_dataset
    from airflow_provider_lake.assets.uri import lake_asset

    found = to_dataset(lake_asset("shop.orders"), None)
    assert (found.namespace, found.name) == ("file", f"{warehouse}/shop.db/orders")


def test_the_outcomes_of_checks_are_assertions_on_the_table_that_was_read(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
    orders.write(pa.table({"id": [1, 1], "note": ["a", None]}))
    task = LakeCheckOperator(
        task_id="check", table="shop.orders", not_null=["note"], unique=["id"], min_rows=1
    )
    with pytest.raises(AirflowFailException):
        task.execute(task_context())

    lineage = task.get_openlineage_facets_on_failure(None)

    [read] = lineage.inputs
    assert lineage.outputs == []
    assert [field.name for field in read.facets["schema"].fields] == ["id", "note"]
    facet = read.inputFacets["dataQualityAssertions"]
    assert [(each.assertion, each.column, each.success) for each in facet.assertions] == [
        ("rows", None, True),
        ("not_null", "note", False),
        ("unique", "id", False),
    ]

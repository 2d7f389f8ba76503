"""The stores of a Mixed table are found by their names: in their database, and through no link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from tests.golden.mixed import mixed_copy
from tests.unit.catalog.iceberg.test_sql_metastore import opened
from tests.unit.mixed.edited_stores import edit

COLUMNS = [("id", "INT"), ("v", "STRING")]
IDENTIFIER = "mixed-format.change.identifier"


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32()), "v": ["a"]})


def contents(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    found = opened(tmp_path)
    for name in ("db", "other"):
        found.create_database(name)
    found.create_table("db.t", COLUMNS, format="mixed", primary_key=["id"])
    return found


def name_change_store(catalog: Any, identifier: str) -> None:
    handle = catalog._handle(TableName("db", "t"))
    commit_metadata(handle, lambda base: set_properties(base.metadata, {IDENTIFIER: identifier}))


def test_the_change_store_is_in_the_database_that_the_base_store_names(catalog):
    change = TableName("db", "t_change_")
    catalog._metastore.rename_table(change, TableName("other", "t_change_"))
    name_change_store(catalog, "other.t_change_")
    catalog.create_table("db.u", COLUMNS, format="mixed", primary_key=["id"])
    catalog._metastore.rename_table(TableName("db", "u_change_"), change)  # of another table
    catalog.table("db.t").write(row(1))
    assert catalog.table("other.t_change_").scan().count() == 2
    assert catalog.table("db.t_change_").scan().count() == 0
    assert contents(catalog.table("db.t")) == [1]
    plan = catalog.plan_drop_table("db.t", purge=True)
    assert plan.change_store == "other.t_change_"
    renamed = catalog.rename_table("db.t", "other.t2")
    assert contents(renamed) == [1]
    assert catalog.list_tables("other") == ["t2"]
    catalog.drop_table("other.t2", purge=True)
    assert catalog._metastore.tables("other") == []
    assert catalog.list_tables("db") == ["t_change_", "u"]


def test_a_change_store_without_a_database_in_its_name_is_beside_the_base_store(catalog):
    name_change_store(catalog, "t_change_")
    catalog.table("db.t").write(row(1))
    assert contents(catalog.table("db.t")) == [1]


def test_a_database_that_does_not_exist_is_named(catalog):
    name_change_store(catalog, "nowhere.t_change_")
    with pytest.raises(lake.CorruptTableError, match=r"its change store .*nowhere.*does not exist"):
        catalog.table("db.t")
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == ["t_change_"]


def test_directories_that_were_copied_to_another_database_are_a_pair(tmp_path):
    mixed_copy("keyed_int", tmp_path / "copied")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    table = catalog.table("copied.t")
    assert table.properties[IDENTIFIER] == "db.t_change_"
    assert catalog.list_tables("copied") == ["t"]


def test_a_plain_table_with_the_name_of_a_change_store_is_listed(catalog):
    handle = catalog._handle(TableName("db", "t_change_"))
    commit_metadata(
        handle, lambda base: remove_properties(base.metadata, ["mixed-format.table-store"])
    )
    assert catalog.list_tables("db") == ["t", "t_change_"]
    assert catalog.table("db.t_change_").format == "iceberg"


def test_a_base_store_behind_a_link_is_not_paired_with_the_table_beside_the_link(tmp_path):
    for name in ("db", "far"):
        mixed_copy("keyed_int", tmp_path / f"w/{name}")
    far, link = tmp_path / "w/far/t", tmp_path / "w/db/t"
    edit(far, properties={IDENTIFIER: "far.t_change_"})
    link.rename(tmp_path / "w/db/moved")
    link.symlink_to(far)
    catalog = lake.open_catalog(str(tmp_path / "w"), format="iceberg")
    before = sorted(tmp_path.rglob("*"))
    for call in (
        lambda: lake.open_table(str(link)),
        lambda: catalog.table("db.t"),
        lambda: catalog.drop_table("db.t", purge=True),
    ):
        with pytest.raises(lake.InvalidRequestError, match="db/t: it is a symbolic link"):
            call()
    assert sorted(tmp_path.rglob("*")) == before
    assert isinstance(lake.open_table(str(far)), lake.MixedTable)

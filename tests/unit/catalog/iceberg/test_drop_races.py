"""Another program changes a table between the check of its drop and its removal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.catalog.iceberg.path import PathMetastore
from lakeformat.catalog.iceberg.sql import SqlMetastore
from lakeformat.storage import LocalStorage
from tests.unit.catalog.iceberg.small_table import ids_of
from tests.unit.catalog.iceberg.test_sql_metastore import opened

COLUMNS = [("id", "BIGINT")]
STEPS = {
    "path, before the directory is renamed": (LocalStorage, "rename_directory"),
    "path, before the removal": (PathMetastore, "remove_table"),
    "sql, before the row is deleted": (SqlMetastore, "_forget"),
    "sql, before the removal": (SqlMetastore, "remove_table"),
}
SQL = [each for each in STEPS if each.startswith("sql")]


def opens(step: str, folder: Path) -> IcebergCatalog:
    if step in SQL:
        return opened(folder)
    return lake.open_catalog(str(folder), format="iceberg")


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers})


@pytest.fixture
def meanwhile(monkeypatch) -> Callable[[str, Callable[[], object]], None]:
    """Lets another program act once, before a step."""

    def arm(step: str, act: Callable[[], object]) -> None:
        owner, name = STEPS[step]
        original = getattr(owner, name)

        def then(*arguments, **more):
            monkeypatch.setattr(owner, name, original)
            act()
            return original(*arguments, **more)

        monkeypatch.setattr(owner, name, then)

    return arm


@pytest.fixture(params=STEPS)
def step(request, tmp_path) -> str:
    catalog = opens(request.param, tmp_path)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    return request.param


@pytest.mark.parametrize("purge", [True, False])
def test_a_drop_keeps_a_table_that_was_created_again(step, meanwhile, tmp_path, purge):
    if not purge and step not in SQL:
        pytest.skip("a path catalog drops only with purge")

    def make_anew() -> None:
        rival = opens(step, tmp_path)
        rival.drop_table("shop.orders", purge=True)
        rival.create_table("shop.orders", COLUMNS).write(ids(9))

    catalog = opens(step, tmp_path)
    catalog.table("shop.orders").write(ids(1))
    meanwhile(step, make_anew)
    with pytest.raises(
        lake.CommitConflictError, match=r"'shop\.orders' was not dropped: another program"
    ):
        catalog.drop_table("shop.orders", purge=purge)
    assert ids_of(catalog.table("shop.orders")) == [9]
    catalog.drop_table("shop.orders", purge=True)
    assert catalog.list_tables("shop") == []


@pytest.mark.parametrize("step", SQL, indirect=True)
def test_a_drop_keeps_a_table_that_was_renamed(step, meanwhile, tmp_path):
    catalog = opens(step, tmp_path)
    catalog.table("shop.orders").write(ids(1))
    meanwhile(step, lambda: opens(step, tmp_path).rename_table("shop.orders", "shop.away"))
    with pytest.raises((lake.CommitConflictError, lake.NotFoundError), match=r"'shop\.orders'"):
        catalog.drop_table("shop.orders", purge=True)
    assert ids_of(catalog.table("shop.away")) == [1]


@pytest.mark.parametrize("step", [each for each in STEPS if "row" not in each], indirect=True)
def test_a_drop_after_a_late_commit_still_drops(step, meanwhile, tmp_path):
    meanwhile(step, lambda: opens(step, tmp_path).table("shop.orders").write(ids(1)))
    catalog = opens(step, tmp_path)
    catalog.drop_table("shop.orders", purge=True)
    assert catalog.list_tables("shop") == []
    assert not [*tmp_path.glob("shop/.dropped-*")]


@pytest.mark.parametrize("step", [each for each in STEPS if "removal" not in each], indirect=True)
def test_a_new_table_with_first_rows_is_kept(step, meanwhile, tmp_path):
    catalog = opens(step, tmp_path)
    meanwhile(step, lambda: opens(step, tmp_path).table("shop.orders").write(ids(5)))
    assert catalog.drop_new_table("shop.orders") is False
    assert ids_of(catalog.table("shop.orders")) == [5]


def test_a_drop_of_a_bucket_keeps_a_table_that_was_created_again(meanwhile, monkeypatch):
    """A memory storage cannot rename directories, as an object store."""
    catalog = lake.open_catalog("memory://drop-races", format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(ids(1))

    def make_anew() -> None:
        rival = lake.open_catalog("memory://drop-races", format="iceberg")
        rival.drop_table("shop.orders", purge=True)
        rival.create_table("shop.orders", COLUMNS).write(ids(9))

    meanwhile("path, before the removal", make_anew)
    with pytest.raises(lake.CommitConflictError, match=r"'shop\.orders' was not dropped"):
        catalog.drop_table("shop.orders", purge=True)
    assert ids_of(catalog.table("shop.orders")) == [9]


@pytest.mark.parametrize("step", [each for each in STEPS if "removal" not in each], indirect=True)
def test_a_new_mixed_table_with_first_rows_is_kept_whole(step, meanwhile, tmp_path):
    catalog = opens(step, tmp_path)
    catalog.create_table("shop.pair", COLUMNS, format="mixed", primary_key=["id"])
    meanwhile(step, lambda: opens(step, tmp_path).table("shop.pair").write(ids(5)))
    assert catalog.drop_new_table("shop.pair") is False
    assert ids_of(catalog.table("shop.pair")) == [5]

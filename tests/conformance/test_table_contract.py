"""Tables of every kind keep the contract of ``lakeformat/tables``."""

from types import MappingProxyType

import pytest

import lakeformat as lake
from lakeformat.tables.table import OPERATIONS
from lakeformat.tables.table import Table as AnyTable
from lakeformat.testing.table_suite import TableSuite


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


class TestAppendTable(TableSuite):
    @pytest.fixture
    def table(self, catalog):
        return catalog.create_table("shop.orders", [("id", "BIGINT")])


class TestKeyedTable(TableSuite):
    @pytest.fixture
    def table(self, catalog):
        options = {"bucket": "1"}
        return catalog.create_table(
            "shop.orders", [("id", "BIGINT")], primary_key=["id"], options=options
        )


class TestBranch(TableSuite):
    @pytest.fixture
    def table(self, catalog):
        catalog.create_table("shop.orders", [("id", "BIGINT")]).branches.create("dev")
        return catalog.table("shop.orders$branch_dev")


class TestListedTable(TableSuite):
    """A table of a SQL catalog."""

    @pytest.fixture
    def table(self, tmp_path):
        catalog = lake.open_catalog(
            str(tmp_path), metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.db"
        )
        catalog.create_database("shop")
        return catalog.create_table("shop.orders", [("id", "BIGINT")])


def test_a_paimon_table_has_all_operations(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    assert (table.format, table.operations) == ("paimon", OPERATIONS - {"upsert"})
    assert table.system_table("files").operations == {"scan"}


def test_an_operation_that_a_format_lacks_is_refused_by_name(catalog):
    class WithoutTags(lake.Table):
        format = "iceberg"
        instead = MappingProxyType({"tags": "keep a snapshot with a branch"})
        tags = AnyTable.tags

    opened = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table = WithoutTags(opened._handle)
    assert "tags" not in table.operations
    words = "is an Iceberg table, which has no operation 'tags': keep a snapshot with a branch"
    with pytest.raises(lake.UnsupportedError, match=words):
        _ = table.tags

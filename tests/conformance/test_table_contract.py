"""Tables of every kind keep the contract of ``lakeformat/tables``."""

from types import MappingProxyType

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.tables.table import OPERATIONS
from lakeformat.tables.table import Table as AnyTable
from lakeformat.tables.wanted_table import WantedTable
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
    of_others = {"analyze_partitions", "compact_deletes", "end_batch", "plan_optimizing", "upsert"}
    assert (table.format, table.operations) == ("paimon", OPERATIONS - of_others)
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


@pytest.mark.parametrize("kind", ["iceberg", "mixed"])
def test_the_changes_of_a_commit_follow_the_position_before_it(tmp_path, kind):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL")]
    table = catalog.create_table("shop.orders", columns, format=kind, primary_key=["id"])
    for number in range(3):
        table.write(pa.table({"id": [number]}))
    if kind == "mixed":
        table.compact(strategy="full")
    positions = [each.position for each in table.snapshots()]
    befores = [table.position_before(each) for each in positions]
    assert befores == [table.position(0), *positions[:-1]]
    for number in range(3):
        changes = table.changes(befores[number], positions[number]).to_arrow()
        assert changes["id"].to_pylist() == [number]


@pytest.mark.parametrize("kind", ["paimon", "iceberg", "mixed"])
def test_a_table_is_compared_with_the_description_of_a_new_one(tmp_path, kind):
    format_ = "paimon" if kind == "paimon" else "iceberg"
    catalog = lake.open_catalog(str(tmp_path), format=format_)
    catalog.create_database("shop")
    more = {"format": "mixed"} if kind == "mixed" else {}
    columns = [("id", "BIGINT"), ("dt", "STRING")]
    table = catalog.create_table(
        "shop.orders", columns, primary_key=["id", "dt"], partition_by=["dt"], **more
    )
    assert (table.format, sorted(table.key_columns)) == (kind, ["dt", "id"])
    as_it_is = WantedTable(primary_key=["id", "dt"], partition_by=["dt"])
    assert table.contradictions(as_it_is) == table.contradictions(WantedTable()) == []
    other = WantedTable(primary_key=["id"], partition_by=["id"], options={"write.x": "1"})
    key, partitions, option = table.contradictions(other)
    assert key.startswith("primary_key is [")
    assert key.endswith("and ['id'] in the request")
    assert partitions == "partition_by is ['dt'] in the table and ['id'] in the request"
    assert option == "option 'write.x' is not set in the table and '1' in the request"
    assert catalog.drop_new_table("shop.orders") is True

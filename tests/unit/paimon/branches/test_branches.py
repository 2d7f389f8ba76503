"""Branches: a history of their own over the data files of the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import branches

COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """A table of two snapshots whose branch ``dev`` starts at the first."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(pa.table({"id": [1]}))
    root = tmp_path / "shop.db" / "orders"
    dev = root / "branch" / "branch-dev"
    for kind, name in (("schema", "schema-0"), ("snapshot", "snapshot-1")):
        (dev / kind).mkdir(parents=True)
        (dev / kind / name).write_bytes((root / kind / name).read_bytes())
    orders.write(pa.table({"id": [2]}))
    return catalog


def ids(table: lake.Table) -> list[int]:
    return table.scan().to_arrow()["id"].to_pylist()


def test_a_branch_is_opened_by_name_and_by_location(catalog):
    main, dev = catalog.table("shop.orders"), catalog.table("shop.orders$branch_dev")
    assert (ids(main), ids(dev)) == ([1, 2], [1])
    assert ids(lake.open_table(main.location, branch="dev")) == [1]


def test_what_is_written_to_a_branch_stays_there_with_its_files_below_the_table(catalog, tmp_path):
    dev = catalog.table("shop.orders$branch_dev")
    dev.write(pa.table({"id": [3]}))
    assert ids(dev) == [1, 3]
    assert ids(catalog.table("shop.orders")) == [1, 2]
    branch = tmp_path / "shop.db" / "orders" / "branch" / "branch-dev"
    assert sorted(path.name for path in branch.iterdir()) == ["schema", "snapshot"]


def test_a_branch_has_schemas_of_its_own(catalog):
    catalog.alter_table("shop.orders$branch_dev", lake.add_column("note", "STRING"))
    assert catalog.table("shop.orders$branch_dev").schema.column_names == ["id", "note"]
    assert catalog.table("shop.orders").schema.column_names == ["id"]


def test_a_branch_that_does_not_exist_names_those_that_do(catalog):
    with pytest.raises(lake.NotFoundError, match="no branch 'nix'; its branches are 'dev'"):
        catalog.table("shop.orders$branch_nix")


@pytest.mark.parametrize("name", ["main", "", " ", "123", "a/b"])
def test_a_name_no_branch_can_have_is_refused(catalog, name):
    with pytest.raises(lake.InvalidRequestError):
        catalog.table(f"shop.orders$branch_{name}")


def test_a_branch_where_directories_have_no_time_is_as_old_as_its_first_schema():
    from lakeformat.storage import MemoryStorage

    storage = MemoryStorage("branches", clock=iter([30, 20, 40]).__next__)
    layout = TableLayout("t")
    for number in range(3):
        storage.overwrite(layout.on_branch("dev").schema(number), b"")
    [dev] = branches(storage, layout)
    assert (dev.name, dev.create_millis) == ("dev", 20)

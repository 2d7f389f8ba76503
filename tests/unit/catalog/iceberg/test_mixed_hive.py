"""Mixed-Hive tables of Amoro are refused: a commit to one store would show Hive a part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table
from tests.unit.catalog.iceberg.stub_services import GlueStub, HiveStub

STORE = {"base.hive.location-root": "hdfs://nodes/warehouse/shop.db/orders/hive"}


@pytest.mark.parametrize("mark", ["arctic.enabled", "arctic.enable"])
@pytest.mark.parametrize("service", [HiveStub, GlueStub])
def test_a_metastore_refuses_a_mixed_hive_table_and_keeps_it(
    service: Any, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = service()
    stub.install(monkeypatch)
    stub.register("shop", "orders", make_small_table(tmp_path / "shop/orders"))
    parameters = stub.parameters("shop", "orders")
    for name in ("table_type", "metadata_location"):
        del parameters[name]
    parameters |= {mark: "true", "arctic.table.root-location": "hdfs://nodes/shop.db/orders"}
    before = {**parameters}
    catalog = stub.open(tmp_path)
    said = f"'shop.orders' is a Mixed-Hive table of Amoro: its parameter '{mark}' is true"
    with pytest.raises(lake.UnsupportedError, match=said):
        catalog.table("shop.orders")
    for change in (
        lambda: catalog.alter_table("shop.orders", lake.set_option("a", "1")),
        lambda: catalog.rename_table("shop.orders", "shop.other"),
        lambda: catalog.drop_table("shop.orders", purge=True),
        lambda: catalog.adopt_table("shop.orders", primary_key=["id"]),
    ):
        with pytest.raises(lake.NotFoundError):  # it is not listed, as any other Hive table
            change()
    assert stub.parameters("shop", "orders") == before


def test_a_store_of_a_mixed_hive_table_is_not_opened_for_writing(tmp_path: Path) -> None:
    file = Path(make_small_table(tmp_path / "orders/base").removeprefix("file://"))
    metadata = json.loads(file.read_text())
    file.write_text(json.dumps(metadata | {"properties": STORE}))
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    for use in (
        lambda: lake.open_table(str(tmp_path / "orders/base")),
        lambda: catalog.table("orders.base"),
        lambda: catalog.adopt_table("orders.base", primary_key=["id"]),
        lambda: catalog.alter_table("orders.base", lake.set_option("a", "1")),
    ):
        with pytest.raises(lake.UnsupportedError, match="is a store of a Mixed-Hive table"):
            use()
    for drop in (catalog.drop_table, catalog.plan_drop_table):
        with pytest.raises(lake.UnsupportedError, match=r"Nothing was dropped: .* with Amoro"):
            drop("orders.base", purge=True)
    opened = lake.open_table(str(file))
    assert ids_of(opened) == [1, 2]
    with pytest.raises(lake.InvalidRequestError, match="so it is read-only"):
        opened.write(pa.table({"id": [3]}))


@pytest.mark.parametrize(
    "mark", [*STORE, "mixed-format.table-store", "lake.renamed-to", "lake.cloning"]
)
def test_no_table_gets_a_mark_with_which_it_could_not_be_opened(tmp_path: Path, mark: str) -> None:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    catalog.create_database("shop")
    catalog.create_table("shop.plain", columns)
    catalog.create_table("shop.mixed", columns, format="mixed", primary_key=["id"])
    for request in (
        lambda: catalog.create_table("shop.new", columns, options={mark: "/x"}),
        lambda: catalog.alter_table("shop.plain", lake.set_option(mark, "/x")),
        lambda: catalog.alter_table("shop.mixed", lake.set_option(mark, "/x")),
    ):
        with pytest.raises(lake.InvalidRequestError, match=f"'{mark}'.* cannot be (set|changed)"):
            request()
    assert catalog.list_tables("shop") == ["mixed", "plain"]
    for name in ("shop.plain", "shop.mixed"):
        assert catalog.table(name).write(pa.table({"id": [1]})).rows == 1

"""A place that holds no Paimon table is named for what it holds."""

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from spark_jobs import compact

COLUMNS = [("id", "BIGINT")]

ICEBERG = [
    ("metadata/version-hint.text", "an Iceberg table (metadata/version-hint.text)"),
    ("metadata/00000-a.metadata.json", "(metadata/00000-a.metadata.json)"),
    ("metadata/00001-a.metadata.json.gz", "an Iceberg table"),
]
OTHERS = [
    ("_delta_log/00000000000000000000.json", "a Delta table (_delta_log)", "the deltalake package"),
    (".hoodie/hoodie.properties", "a Hudi table (.hoodie)", "Spark with Hudi"),
]


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def place(tmp_path, *files):
    """The directory of ``shop.orders`` with these files."""
    root = tmp_path / "shop.db" / "orders"
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return str(root)


@pytest.mark.parametrize(("file", "named", "reader"), OTHERS)
def test_a_table_of_another_format_is_named_with_its_place_and_reader(
    catalog, tmp_path, file, named, reader
):
    root = place(tmp_path, file, "data/part-0.parquet")
    for open_it in (lambda: lake.open_table(root), lambda: catalog.table("shop.orders")):
        with pytest.raises(lake.UnsupportedError) as refused:
            open_it()
        message = str(refused.value)
        assert message.startswith(f"file://{root} is ")
        assert named in message
        assert f"Read it with {reader}" in message


@pytest.mark.parametrize(("file", "named"), ICEBERG)
def test_a_catalog_names_an_iceberg_table_with_the_call_that_opens_it(
    catalog, tmp_path, file, named
):
    root = place(tmp_path, file, "data/part-0.parquet")
    with pytest.raises(lake.UnsupportedError) as refused:
        catalog.table("shop.orders")
    message = str(refused.value)
    assert message.startswith(f"file://{root} is ")
    assert named in message
    assert f"lake.open_table('file://{root}'), or `lake scan file://{root}`" in message


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("metadata/version-hint.text", "has no file of table metadata"),
        ("metadata/00000-a.metadata.json", r"00000-a.metadata.json .* is not JSON"),
    ],
)
def test_damaged_iceberg_metadata_is_named(tmp_path, file, reason):
    with pytest.raises(lake.LakeError, match=reason):
        lake.open_table(place(tmp_path, file))


def test_a_paimon_table_stays_one_whatever_lies_beside_it(catalog, tmp_path):
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    root = place(tmp_path, "metadata/v1.metadata.json", "metadata/version-hint.text")
    assert lake.open_table(root).scan().count() == 1
    assert catalog.table("shop.orders").scan().count() == 1
    with pytest.raises(lake.NotFoundError, match="dev"):
        lake.open_table(root, branch="dev")


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("part-0.parquet", "lake migrate file://{root} DATABASE.TABLE --copy"),
        ("dt=2024-01-31/part-0.orc", "lake migrate file://{root} DATABASE.TABLE --copy"),
        ("orders.csv", "lake write DATABASE.TABLE FILE"),
    ],
)
def test_plain_files_are_named_with_the_command_that_takes_them(catalog, tmp_path, file, hint):
    root = place(tmp_path, "_SUCCESS", file)
    with pytest.raises(lake.NotFoundError, match="is not a table: it has no schema file") as found:
        lake.open_table(root)
    assert f"plain files such as {Path(file).name}" in str(found.value)
    assert hint.format(root=root) in str(found.value)
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' does not exist .*lake migrate"):
        catalog.table("shop.orders")


def test_an_empty_or_missing_place_is_only_missing(catalog, tmp_path):
    for root in (tmp_path / "shop.db", tmp_path / "nothing"):
        with pytest.raises(lake.NotFoundError, match=r"create the table through a catalog$"):
            lake.open_table(str(root))
    with pytest.raises(
        lake.NotFoundError, match=r"does not exist in file:\S*: list_tables\S* lists [a-z ]+$"
    ):
        catalog.table("shop.orders")


def test_a_missing_database_whose_directory_has_no_suffix_may_hold_iceberg_tables(
    catalog, tmp_path
):
    place(tmp_path, "../../sales/orders/metadata/version-hint.text")
    with pytest.raises(lake.NotFoundError, match=r"'sales' does not exist .*format='iceberg'"):
        catalog.table("sales.orders")


def test_the_command_line_and_a_job_name_the_format_too(catalog, tmp_path):
    root = place(tmp_path, "_delta_log/00000000000000000000.json")
    for name in (root, "shop.orders"):
        done = CliRunner().invoke(app, ["--warehouse", str(tmp_path), "schemas", name])
        assert "is a Delta table" in str(done.exception)
    with pytest.raises(lake.UnsupportedError, match="is a Delta table"):
        compact.run({"warehouse": str(tmp_path), "table": "shop.orders"}, None)


def test_a_table_that_opens_costs_no_look_at_other_formats(catalog, monkeypatch):
    catalog.create_table("shop.orders", COLUMNS)
    looked = []
    monkeypatch.setattr("lakeformat.catalog.places.explain_missing", looked.append)
    monkeypatch.setattr("lakeformat.catalog.open_table.explain_missing", looked.append)
    catalog.table("shop.orders")
    lake.open_table(catalog.table("shop.orders").location)
    assert looked == []


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_the_directory_of_a_database_or_warehouse_names_its_tables(tmp_path, table_format):
    catalog = lake.open_catalog(str(tmp_path / "wh"), format=table_format)
    for database in ("shop", "stock"):
        catalog.create_database(database)
    for table in ("shop.orders", "shop.refunds"):
        location = catalog.create_table(table, [("id", "BIGINT")]).location
    folder = location.rpartition("/")[0]
    told = "the directory of a database with the tables orders, refunds: name a table"
    with pytest.raises(lake.NotFoundError, match=rf"{told}, such as {folder}/orders$"):
        lake.open_table(folder)
    with pytest.raises(
        lake.NotFoundError, match=r"a warehouse with the tables shop[.db]*/orders, shop[.db]*/ref"
    ):
        lake.open_table(str(tmp_path / "wh"))
    with pytest.raises(lake.NotFoundError) as empty:
        lake.open_table(f"{folder.replace('shop', 'stock')}")
    assert "tables" not in str(empty.value)

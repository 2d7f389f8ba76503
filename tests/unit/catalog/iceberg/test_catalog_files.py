"""A catalog may name files below the warehouse, or below a directory that the caller allows."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.storage import ExternalRoots, LocalStorage
from tests.unit.catalog.iceberg.small_table import make_small_table


def files(warehouse: object, *allowed: object) -> CatalogFiles:
    return CatalogFiles(LocalStorage(), str(warehouse), {}, ExternalRoots.of(map(str, allowed)))


def load(found: CatalogFiles, address: str) -> object:
    return found.load("shop.orders", Answer(address), None)


def test_metadata_below_the_warehouse_is_read(tmp_path):
    address = make_small_table(tmp_path / "shop/orders")
    loaded = load(files(tmp_path), address)
    assert loaded.metadata_file == address
    assert loaded.places.uri == f"file://{tmp_path}/shop/orders"


def test_metadata_elsewhere_needs_an_allowed_directory(tmp_path):
    address = make_small_table(tmp_path / "other/shop/orders")
    here = files(tmp_path / "warehouse")
    with pytest.raises(lake.InvalidRequestError, match="outside of the warehouse") as refused:
        load(here, address)
    assert f"external-roots=file://{tmp_path}/other/shop " in str(refused.value)
    assert load(files(tmp_path / "warehouse", tmp_path / "other"), address)


def test_a_file_below_the_warehouse_may_not_name_a_table_outside(tmp_path):
    make_small_table(tmp_path / "secret/orders", **{"properties": {}})
    planted = tmp_path / "warehouse/orders/metadata/v1.metadata.json"
    planted.parent.mkdir(parents=True)
    planted.write_bytes((tmp_path / "secret/orders/metadata/v1.metadata.json").read_bytes())
    with pytest.raises(lake.InvalidRequestError, match=r"file is of a table at file://.*/secret"):
        load(files(tmp_path / "warehouse"), f"file://{planted}")


def test_metadata_may_have_a_directory_of_its_own(tmp_path):
    kept = tmp_path / "kept"
    address = make_small_table(
        tmp_path / "orders", properties={"write.metadata.path": f"file://{kept}"}
    )
    kept.mkdir()
    there = kept / "v1.metadata.json"
    there.write_bytes((tmp_path / "orders/metadata/v1.metadata.json").read_bytes())
    assert load(files(tmp_path), f"file://{there}").places.uri == f"file://{tmp_path}/orders"
    with pytest.raises(lake.InvalidRequestError, match="which keeps its metadata in"):
        load(files(tmp_path), address)


@pytest.mark.parametrize("address", ["relative/v1.metadata.json", "ftp://x/y.json", " "])
def test_no_other_address_is_followed(tmp_path, address):
    with pytest.raises(lake.LakeError):
        load(files(tmp_path), address)


def test_a_link_out_of_the_warehouse_is_not_followed(tmp_path):
    make_small_table(tmp_path / "secret/orders")
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse/orders").symlink_to(tmp_path / "secret/orders")
    with pytest.raises(lake.InvalidRequestError):
        load(
            files(tmp_path / "warehouse"),
            f"file://{tmp_path}/warehouse/orders/metadata/v1.metadata.json",
        )


def test_an_answer_shows_no_option():
    assert "secret" not in repr(Answer("s3://b/m.json", {"s3.secret-access-key": "secret"}))

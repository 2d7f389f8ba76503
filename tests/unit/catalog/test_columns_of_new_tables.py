"""Columns of a new table that are not pairs of name and type are refused by the same words."""

import pytest

import lakeformat as lake


@pytest.fixture(params=["paimon", "iceberg"])
def catalog(request, tmp_path):
    catalog = lake.open_catalog(tmp_path, format=request.param)
    catalog.create_database("shop")
    return catalog


@pytest.mark.parametrize("columns", [["id"], {"id": "BIGINT"}, ["note"], "id", [("id",)], None])
def test_columns_that_are_no_pairs_are_refused_with_an_example(catalog, columns):
    with pytest.raises(lake.InvalidRequestError, match=r"pairs such as \[\('id', 'BIGINT"):
        catalog.create_table("shop.orders", columns)


def test_a_name_that_is_no_text_is_refused(catalog):
    with pytest.raises(lake.InvalidRequestError, match="a column's name must be text, got 1"):
        catalog.create_table("shop.orders", [(1, "BIGINT")])

"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import lakeformat as lake


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """A warehouse on disk with an empty database ``shop``."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def keyed_table(catalog) -> Callable[..., lake.Table]:
    """Makes ``shop.orders`` of two buckets; in names of options a dash may be an underscore."""

    def make(
        columns: Sequence[tuple[str, str]], keys: Sequence[str] = ("id",), **options: str
    ) -> lake.Table:
        named = {"bucket": "2"} | {name.replace("_", "-"): text for name, text in options.items()}
        return catalog.create_table("shop.orders", columns, primary_key=keys, options=named)

    return make

"""What many tests begin with."""

from __future__ import annotations

import pytest

import lakeformat as lake


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """A warehouse on disk with an empty database ``shop``."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog

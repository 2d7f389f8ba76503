"""Shared by the tests of catalogs."""

from __future__ import annotations

import pytest

import lakeformat as lake


@pytest.fixture(params=["filesystem", "jdbc"])
def opened(request, tmp_path):
    """Opens the catalog as another program would."""
    more = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    settings = more if request.param == "jdbc" else {}
    return lambda: lake.open_catalog(str(tmp_path / "wh"), **settings)

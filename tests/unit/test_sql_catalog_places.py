"""Databases of a SQL catalog may lie in another storage than its warehouse."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.sql import places
from lakeformat.cli.app import app
from lakeformat.sql import SqlLock
from lakeformat.storage import LockedCreation
from lakeformat.testing.crashable import CrashableStorage

COLUMNS = [("id", "BIGINT")]
_names = itertools.count()


@pytest.fixture
def opened(tmp_path):
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db"

    def open_again(**options: str) -> lake.Catalog:
        return lake.open_catalog(
            str(tmp_path / "warehouse"), metastore="jdbc", uri=uri, options=options
        )

    return open_again


@pytest.fixture
def elsewhere() -> str:
    return f"memory://elsewhere-{next(_names)}"


@pytest.fixture
def taken(monkeypatch) -> list[str]:
    """The locks that were asked for."""
    keys: list[str] = []
    hold = SqlLock.hold
    monkeypatch.setattr(SqlLock, "hold", lambda *asked: keys.append(asked[1]) or hold(*asked))
    return keys


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_table_is_renamed_within_another_storage_and_not_between_two(tmp_path, elsewhere):
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
    catalog = lake.open_catalog(f"{elsewhere}/warehouse", metastore="jdbc", uri=uri)
    catalog.create_database("near")
    for name in ("far", "away"):
        catalog.create_database(name, properties={"location": str(tmp_path / name)})
    catalog.create_table("far.orders", COLUMNS).write(pa.table({"id": [1]}))
    catalog.rename_table("far.orders", "far.new")
    assert ids(catalog.rename_table("far.new", "away.orders")) == [1]
    with pytest.raises(lake.InvalidRequestError, match="lie in different storages"):
        catalog.rename_table("away.orders", "near.orders")


def test_who_vouches_for_being_alone_does_so_in_every_storage(opened, elsewhere):
    catalog = opened(**{"unsafe.single-writer": "true"})
    catalog.create_database("near")
    catalog.create_database("far", properties={"location": f"{elsewhere}/far"})
    for database in ("near", "far"):
        table = catalog.create_table(f"{database}.orders", COLUMNS)
        assert isinstance(table._handle.storage, LockedCreation)
        table.write(pa.table({"id": [1]}))
        assert ids(table) == [1]


def test_commits_take_the_lock_where_the_storage_of_the_table_needs_it(
    opened, elsewhere, taken, monkeypatch
):
    """The warehouse is on a disk, and the database where no directory can be renamed."""
    far = CrashableStorage()
    monkeypatch.setattr(places, "resolve", lambda uri, near: (far, "far"))
    catalog = opened()
    catalog.create_database("near")
    catalog.create_database("far", properties={"location": f"{elsewhere}/far"})
    tables = [catalog.create_table(f"{name}.orders", COLUMNS) for name in ("near", "far")]
    taken.clear()
    for table in tables:
        table.write(pa.table({"id": [1]}))
    assert taken == ["far.orders"]


def call(*words: str) -> str:
    """What a command prints; its error is raised."""
    outside = {"LAKE_WAREHOUSE": None, "LAKE_METASTORE": None, "LAKE_URI": None}
    shown = CliRunner().invoke(app, [*words], env=outside, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.output


def test_at_a_terminal_a_catalog_is_found_whose_databases_all_lie_elsewhere(
    opened, elsewhere, tmp_path
):
    said = ["-w", f"{tmp_path}/warehouse", "--metastore", "jdbc"]
    said += ["--uri", f"jdbc:sqlite:{tmp_path}/catalog.db"]
    with pytest.raises(lake.NotFoundError, match=r"warehouse .* does not exist: check"):
        call(*said, "tables")
    catalog = opened()
    catalog.create_database("far", properties={"location": f"{elsewhere}/far"})
    catalog.create_table("far.orders", COLUMNS)
    assert not (tmp_path / "warehouse").exists()
    assert call(*said, "tables").split()[-2:] == ["far", "orders"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--metastore", "jdbc"], "--metastore"),
        (["--uri", "sqlite:////a.db"], "--uri"),
        (["--catalog-option", "catalog-key=x"], "--catalog-option catalog-key"),
    ],
)
def test_what_says_how_names_are_looked_up_is_refused_with_a_directory(tmp_path, words, named):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    location = catalog.create_table("shop.orders", COLUMNS).location
    directory = location.removeprefix("file://")
    with pytest.raises(lake.InvalidRequestError, match=f"is a directory.* leave out {named}"):
        call(*words, "schemas", directory)
    shown = CliRunner().invoke(app, ["schemas", directory], env={"LAKE_METASTORE": "jdbc"})
    assert shown.exit_code == 0, shown.output  # that is for the commands which look up names

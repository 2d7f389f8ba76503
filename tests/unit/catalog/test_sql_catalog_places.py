"""Databases of a SQL catalog may lie in another storage than its warehouse."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.sql import places
from lakeformat.cli.app import app
from lakeformat.storage import LockedCreation
from lakeformat.storage.sql import SqlLock
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
    with pytest.raises(lake.InvalidRequestError, match="are in different storages"):
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
    """Return the output of a command; raise its error."""
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


@pytest.mark.parametrize(
    "location", ["{far}", "{far}/inner", "{far}/..", "{warehouse}/shop.db/t", "{warehouse}"]
)
def test_a_location_that_is_another_ones_is_refused(opened, tmp_path, location):
    catalog = opened()
    catalog.create_database("shop")
    catalog.create_database("first", properties={"location": f"{tmp_path}/far"})
    where = location.format(far=f"{tmp_path}/far", warehouse=f"{tmp_path}/warehouse")
    with pytest.raises(lake.InvalidRequestError, match=r"choose a directory that"):
        catalog.create_database("second", properties={"location": where})
    assert catalog.list_databases() == ["first", "shop"]


def test_the_place_a_database_would_have_by_default_is_kept_for_it(opened, tmp_path):
    catalog = opened()
    where = f"{tmp_path}/warehouse/other.db"
    with pytest.raises(lake.InvalidRequestError, match=r"the directory of database 'other'"):
        catalog.create_database("shop", properties={"location": where})
    catalog.create_database("other", properties={"location": where})


def test_a_relative_location_is_the_same_from_every_directory(opened, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    opened().create_database("shop", properties={"location": "data/shop"})
    monkeypatch.chdir(tmp_path)
    assert opened().database_properties("shop")["location"] == f"{tmp_path}/here/data/shop"


def test_a_tilde_in_a_location_is_the_home_directory(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    opened().create_database("shop", properties={"location": "~/far"})
    assert opened().database_properties("shop")["location"] == f"{tmp_path}/far"


def test_a_database_does_not_lie_where_the_whole_warehouse_does(opened, tmp_path):
    with pytest.raises(lake.InvalidRequestError, match="holds the warehouse"):
        opened().create_database("shop", properties={"location": f"{tmp_path}/warehouse"})

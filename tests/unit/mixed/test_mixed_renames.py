"""Both stores of a Mixed table are renamed; a repeated call completes an interrupted rename."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.catalog.iceberg.sql import SqlMetastore
from tests.golden.mixed import mixed_copy
from tests.unit.catalog.iceberg.test_sql_metastore import opened

STEPS = 5
"""The calls that change something: the record, the change store, its name, the base store, the
record."""


class CrashError(Exception):
    """The process dies."""


class Crashes:
    """Counts the calls that change the catalog, and dies before one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for name in ("rename_table", "name_next"):
            monkeypatch.setattr(SqlMetastore, name, self._counting(getattr(SqlMetastore, name)))

    def _counting(self, method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise CrashError
            return method(*arguments)

        return call


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    found = opened(tmp_path)
    found.create_database("db")
    found.create_database("other")
    columns = [("k", "BIGINT"), ("v", "STRING")]
    table = found.create_table("db.t0", columns, format="mixed", primary_key=["k"])
    table.write(pa.table({"k": [1, 2], "v": ["a", "b"]}))
    return found


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("name", ["a/b", "a\\b"])
def test_a_pair_keeps_its_name_if_the_new_one_cannot_name_a_change_store(catalog, name):
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"cannot be the name of a Mixed table, .* Nothing was written",
    ):
        catalog.rename_table("db.t0", f"db.{name}")
    assert catalog.list_tables("db") == ["t0"]
    assert rows(catalog.table("db.t0")) == [(1, "a"), (2, "b")]


def test_a_renamed_pair_is_read_written_listed_and_dropped_by_its_new_name(catalog):
    renamed = catalog.rename_table("db.t0", "other.u")
    assert isinstance(renamed, lake.MixedTable)
    renamed.write(pa.table({"k": [2], "v": ["c"]}))
    assert rows(catalog.table("other.u")) == [(1, "a"), (2, "c")]
    assert renamed.properties["mixed-format.change.identifier"] == "other.u_change_"
    assert "lake.renamed-to" not in renamed.properties
    assert (catalog.list_tables("db"), catalog.list_tables("other")) == ([], ["u"])
    catalog.drop_table("other.u")
    assert catalog._metastore.tables("other") == []


@pytest.mark.parametrize("database", ["db", "other"])
def test_a_repeated_call_completes_a_rename_that_died_before_any_step(
    database, catalog, monkeypatch
):
    crashes, old = Crashes(monkeypatch), "db.t0"
    for step in range(STEPS):
        new = f"{database if step % 2 == 0 else 'db'}.t{step + 1}"
        crashes.left = step
        with pytest.raises(CrashError):
            catalog.rename_table(old, new)
        crashes.left = None
        if step < STEPS - 1:
            assert catalog._open(catalog._plain_name(old)).properties.get("lake.renamed-to") == (
                new if step else None
            )
            if step == 2:
                with pytest.raises(lake.CorruptTableError, match=f"interrupted rename to '{new}'"):
                    catalog.table(old)
            catalog.rename_table(old, new)
        assert rows(catalog.table(new)) == [(1, "a"), (2, "b")]
        assert catalog._metastore.tables(old.partition(".")[0]).count(old.partition(".")[2]) == 0
        old = new
    assert catalog.table(old).properties["lake.renamed-to"] == old
    assert catalog.detach_table(old, merge=True, dry_run=True).change_store == f"{old}_change_"
    assert crashes.left is None


def test_a_refused_rename_changes_nothing(catalog, monkeypatch, tmp_path):
    catalog.create_table("db.u_change_", [("k", "BIGINT")])
    with pytest.raises(
        lake.AlreadyExistsError, match=r"would become 'db\.u_change_', but a table of"
    ):
        catalog.rename_table("db.t0", "db.u")

    def refuse(*_: Any) -> None:
        raise lake.UnsupportedError("no")

    monkeypatch.setattr(SqlMetastore, "rename_table", refuse)
    with pytest.raises(lake.UnsupportedError, match="no"):
        catalog.rename_table("db.t0", "db.v")
    table = catalog.table("db.t0")
    assert table.properties["mixed-format.change.identifier"] == "db.t0_change_"
    assert "lake.renamed-to" not in table.properties
    with pytest.raises(lake.UnsupportedError, match="cannot be altered or renamed alone"):
        catalog.rename_table("db.t0_change_", "db.v")
    pair = mixed_copy("keyed_int", tmp_path / "paths/db")
    before = {path for path in pair.root.rglob("*")}
    paths = lake.open_catalog(str(tmp_path / "paths"), format="iceberg")
    with pytest.raises(lake.UnsupportedError, match="in a catalog of directories"):
        paths.rename_table("db.t", "db.u")
    assert {path for path in pair.root.rglob("*")} == before


def test_a_renamed_pair_is_not_opened_by_its_directory(catalog):
    """The name of its change store could be that of another table's directory."""
    old = catalog.table("db.t0").location
    new = catalog.create_table(
        "db.new", [("k", "BIGINT"), ("v", "STRING")], primary_key=["k"], format="mixed"
    ).location
    catalog.table("db.new").write(pa.table({"k": [3], "v": ["new"]}))
    for location, value in ((old, [(1, "a"), (2, "b")]), (new, [(3, "new")])):
        assert rows(lake.open_table(location)) == value
    catalog.rename_table("db.t0", "db.old")
    with pytest.raises(lake.UnsupportedError, match=r"renamed.*its name in the catalog, 'db\.old'"):
        lake.open_table(old)
    catalog.rename_table("db.new", "db.t0")
    with pytest.raises(lake.UnsupportedError, match=r"its name in the catalog, 'db\.t0'"):
        lake.open_table(new)
    assert rows(catalog.table("db.t0")) == [(3, "new")]
    catalog.rename_table("db.t0", "db.new")
    assert rows(lake.open_table(new)) == [(3, "new")]

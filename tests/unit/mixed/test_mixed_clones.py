"""A clone of a Mixed table is a new pair with the merged rows of one state; repeats complete it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.iceberg.path import PathMetastore
from lakeformat.catalog.transfer import clone_pair
from lakeformat.cli.app import app
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from tests.golden.mixed import mixed_copy
from tests.unit.catalog.iceberg.test_sql_metastore import opened

COLUMNS = [("id", "INT"), ("day", "INT"), ("v", "STRING"), ("l", "ARRAY<INT>")]


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([each[0] for each in given], pa.int32()),
            "day": pa.array([each[0] % 2 for each in given], pa.int32()),
            "v": [each[1] for each in given],
            "l": pa.array([[each[0]] for each in given], pa.list_(pa.int32())),
        }
    )


def contents(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    found = lake.open_catalog(str(tmp_path / "from"), format="iceberg")
    found.create_database("db")
    table = found.create_table(
        "db.t",
        COLUMNS,
        format="mixed",
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"write.data.path": "elsewhere", "change.file-index.hash-bucket": "2"},
    )
    found.alter_table("db.t", lake.remove_option("write.data.path"))
    table.write(rows((1, "a"), (2, "a"), (3, "a")))
    table.compact(strategy="full", executor="serial")
    table.write(rows((2, "b"), (4, "b")))
    table.write(rows((3, "")), kinds=["-D"])
    found.alter_table("db.t", lake.drop_column("l"), lake.add_column("w", "BIGINT", after="id"))
    assert isinstance(found, lake.IcebergCatalog)
    return found


@pytest.fixture
def target(tmp_path: Path) -> lake.IcebergCatalog:
    found = opened(tmp_path)
    found.create_database("copies")
    return found


def test_a_clone_has_the_rows_columns_and_properties_of_the_newest_state(catalog, target):
    source = catalog.table("db.t")
    calls: list[tuple[int, int]] = []
    report = lake.clone_table(
        source, target, "copies.t", on_progress=lambda *numbers: calls.append(numbers)
    )
    clone = target.table("copies.t")
    assert contents(clone) == contents(clone.base) == contents(source)
    assert [each["v"] for each in contents(clone)] == ["a", "b", "b"]
    for each in (clone.base.schema, clone.change.schema):
        assert each.fields == source.schema.fields
    assert clone.partition_by == ["day"]
    assert clone.primary_key == ["id", "day"]
    properties = {
        **source.properties,
        "mixed-format.change.identifier": "copies.t_change_",
    }
    del properties["lake.altered"]
    assert clone.properties == properties
    assert (report.source, report.target) == (source.location, clone.location)
    assert report.what == f"position {source.position()}"
    assert report.reason == "3 rows copied and compared"
    assert calls[-1][0] == calls[-1][1] > 0
    clone.write(
        pa.table(
            {"id": [9], "day": [1], "v": ["new"]},
            schema=pa.schema([("id", pa.int32()), ("day", pa.int32()), ("v", pa.string())]),
        )
    )
    assert contents(clone)[-1] == {"id": 9, "w": None, "day": 1, "v": "new"}
    assert len(contents(source)) == 3
    with pytest.raises(lake.AlreadyExistsError, match=r"table 'copies\.t' exists"):
        lake.clone_table(source, target, "copies.t")


def test_a_clone_of_a_position_has_its_rows_and_columns(catalog, target):
    source = catalog.table("db.t")
    position = str(source.positions(limit=9)[0])
    lake.clone_table(source, target, "copies.t", snapshot=position)
    clone = target.table("copies.t")
    assert contents(clone) == source.scan(snapshot=position).to_arrow().sort_by("id").to_pylist()
    assert clone.schema.column_names == ["id", "day", "v", "l"]


def test_a_golden_table_is_cloned(target, tmp_path):
    source = lake.open_table(mixed_copy("typed_keys", tmp_path / "golden/db").location)
    lake.clone_table(source, target, "copies.t")
    found = [
        sorted(map(str, each.scan().to_arrow().to_pylist()))
        for each in (source, target.table("copies.t"))
    ]
    assert found[0] == found[1]


def test_a_dry_run_counts_and_changes_nothing(catalog, target, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    report = lake.clone_table(catalog.table("db.t"), target, "copies.t", dry_run=True)
    assert report.reason == "3 rows would be copied"
    assert report.files > 0
    assert sorted(tmp_path.rglob("*")) == before
    assert target.list_tables("copies") == []


class DiedError(Exception):
    """The process dies."""


def test_a_clone_that_dies_before_any_step_shows_no_rows_and_a_repeat_completes_it(
    catalog, tmp_path, monkeypatch
):
    source = catalog.table("db.t")
    wanted, left, steps = contents(source), [0], 0

    def dying(method: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise DiedError
            return method(*arguments, **more)

        return call

    for cls, name in (
        (PathMetastore, "make_table"),
        (PathMetastore, "remove_table"),
        (DirectoryPointer, "publish"),
    ):
        monkeypatch.setattr(cls, name, dying(getattr(cls, name)))
    while True:
        name = f"db.c{steps}"
        left[0] = steps
        try:
            lake.clone_table(source, catalog, name)
            break
        except DiedError:
            left[0] = 99
        steps += 1
        with pytest.raises((lake.NotFoundError, lake.UnsupportedError)) as refused:
            catalog.table(name)
        assert "clone" in str(refused.value) or "does not exist" in str(refused.value)
        report = lake.clone_table(source, catalog, name)
        assert contents(catalog.table(name)) == wanted
        resumed = "an earlier attempt had copied" in report.reason
        assert report.copied == (0 if resumed else report.files)
    assert steps >= 5
    assert resumed, "the last step only removes the mark"


def test_rows_that_are_stored_otherwise_are_found(catalog, target, monkeypatch):
    monkeypatch.setattr(clone_pair, "row_hashes", Different(clone_pair.row_hashes))
    source = catalog.table("db.t")
    for _ in range(2):  # a repeated call compares again
        with pytest.raises(lake.CorruptTableError, match=r"\(3 rows\) differs from that of"):
            lake.clone_table(source, target, "copies.t")
    unfinished = r"is an unfinished clone \(the newest state of .*db/t\): repeat the clone"
    with pytest.raises(lake.UnsupportedError, match=unfinished):
        target.table("copies.t")
    target.drop_table("copies.t", purge=True)
    assert target._metastore.tables("copies") == []


class Different:
    """Hashes of rows that are never the same."""

    def __init__(self, hashes: Any) -> None:
        self.hashes, self.calls = hashes, 0

    def __call__(self, columns: Any) -> Any:
        self.calls += 1
        return self.hashes(columns) + self.calls


def test_what_cannot_be_cloned_is_refused(catalog, target, tmp_path):
    source = catalog.table("db.t")
    paimon = lake.open_catalog(str(tmp_path / "paimon"))
    paimon.create_database("copies")
    plain = catalog.create_table("db.plain", [("id", "INT")])
    of_paimon = paimon.create_table("copies.p", [("id", "INT")])
    catalog.create_table("db.other_change_", [("id", "INT")])
    for call, error in (
        (lambda: lake.clone_table(source, paimon, "copies.t"), "open the target with format='ice"),
        (lambda: lake.clone_table(of_paimon, target, "copies.t"), "with format='paimon'"),
        (lambda: lake.clone_table(plain, target, "copies.t"), "which clone_table does not copy"),
        (lambda: lake.clone_table(source, target, "copies.t", full=True), "its clone has one st"),
        (lambda: lake.clone_table(source, target, "copies.t", tag="a"), "it has no tags"),
        (lambda: lake.clone_table(source, target, "nowhere.t"), "'nowhere' does not exist"),
        (lambda: lake.clone_table(source, catalog, "db.other"), "'db.other_change_' exists in"),
    ):
        with pytest.raises(lake.LakeError, match=error):
            call()
    assert target.list_tables("copies") == []


@pytest.mark.parametrize("source", [None, "db.t"])
def test_what_is_no_open_table_is_refused_with_how_to_open_one(source, target):
    with pytest.raises(lake.InvalidRequestError, match=r"source must be an open table, got .*open"):
        lake.clone_table(source, target, "copies.t")


def test_two_rows_of_one_key_are_refused_in_words_of_the_clone(catalog, target):
    options = {"write.upsert.enabled": "false"}
    source: Any = catalog.create_table(
        "db.twice", COLUMNS[:2], format="mixed", primary_key=["id"], options=options
    )
    both = [
        pa.table({"id": pa.array([1, 2], pa.int32()), "day": pa.array([day] * 2, pa.int32())})
        for day in (7, 8)
    ]
    for each in both:
        source.write(each)
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"db/twice was not cloned to 'copies\.t': 4 rows have a key that occurs more than "
        r"once, such as .*id.*Call upsert\(\) of the source",
    ):
        lake.clone_table(source, target, "copies.t")
    assert target._metastore.tables("copies") == []
    source.upsert(both[1])
    lake.clone_table(source, target, "copies.t")
    assert contents(target.table("copies.t")) == [{"id": 1, "day": 8}, {"id": 2, "day": 8}]


def test_a_key_in_two_partitions_is_refused_with_how_to_keep_one_row(catalog, target):
    source: Any = catalog.create_table(
        "db.twice", COLUMNS[:2], format="mixed", primary_key=["id"], partition_by=["day"]
    )
    days = pa.array([7, 8], pa.int32())
    source.write(pa.table({"id": pa.array([1, 1], pa.int32()), "day": days}))
    advice = r"has rows in other partitions, delete those rows with delete\(\) of the source"
    with pytest.raises(lake.InvalidRequestError, match=advice):
        lake.clone_table(source, target, "copies.t")
    source.delete("id = 1 and day = 7")
    lake.clone_table(source, target, "copies.t")
    assert contents(target.table("copies.t")) == [{"id": 1, "day": 8}]


def test_the_command_clones_into_another_warehouse(catalog, tmp_path):
    path, to = str(tmp_path / "from/db/t"), str(tmp_path / "to")
    lake.open_catalog(to, format="iceberg").create_database("db")
    runner = CliRunner()
    position = str(catalog.table("db.t").position())
    shown = runner.invoke(
        app, ["clone", path, "db.c", "--to", to, "--snapshot", position, "--json"]
    )
    assert shown.exit_code == 0, shown.output
    [report] = json.loads(shown.output)
    assert report["what"] == f"position {position}"
    named = ["--format", "iceberg", "--warehouse", str(tmp_path / "from")]
    shown = runner.invoke(app, [*named, "clone", "db.t", "db.c", "--dry-run"])
    assert "3 rows would be copied" in shown.output
    assert runner.invoke(app, [*named, "clone", "db.t", "db.c"]).exit_code == 0
    assert contents(catalog.table("db.c")) == contents(catalog.table("db.t"))
    assert runner.invoke(app, [*named, "clone", path, "db.of_directory"]).exit_code == 0
    assert contents(catalog.table("db.of_directory")) == contents(catalog.table("db.t"))
    missing = runner.invoke(app, ["clone", path, "no.c", "--to", to])
    assert f"`lake --format iceberg -w {to} create-database no`" in str(missing.exception)


@pytest.mark.parametrize("name", ["a/b", "a\\b"])
def test_a_clone_whose_change_store_cannot_be_named_is_refused(catalog, target, name):
    for dry_run in (True, False):
        with pytest.raises(
            lake.InvalidRequestError,
            match=r"cannot be the name of a Mixed table, .* Nothing was written",
        ):
            lake.clone_table(catalog.table("db.t"), target, f"copies.{name}", dry_run=dry_run)
    assert target.list_tables("copies") == []

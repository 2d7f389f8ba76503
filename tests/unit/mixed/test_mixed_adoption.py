"""An Iceberg table becomes a Mixed table and back; only metadata changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.iceberg import detach_pair
from lakeformat.cli.app import app
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.mixed.adopt import adopt as adoption
from lakeformat.mixed.stores.store_pair import StorePair
from tests.iceberg_rest_server import rest_server
from tests.sampling import SEED, count
from tests.unit.catalog.iceberg.test_sql_metastore import opened
from tests.unit.mixed.named_rows import contents, names, new_catalog, new_table

COLUMNS = [("id", "BIGINT"), ("name", "STRING")]


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    return new_catalog(tmp_path)


def catalog_of_kind(kind: str, root: Path) -> lake.IcebergCatalog:
    if kind == "path":
        return new_catalog(root)
    found = opened(root)
    found.create_database("db")
    return found


def iceberg_table(catalog: lake.IcebergCatalog, columns: Any = COLUMNS, **more: Any) -> Any:
    made = catalog.create_table("db.t", columns, **more)
    assert isinstance(made, lake.IcebergTable)
    return made


def adopted(catalog: lake.IcebergCatalog, key: str = "id") -> lake.MixedTable:
    catalog.adopt_table("db.t", primary_key=[key])
    found = catalog.table("db.t")
    assert isinstance(found, lake.MixedTable)
    return found


def stored(root: Path) -> dict[str, bytes]:
    """The files of all tables, without the catalog."""
    found = (each for each in root.rglob("*") if each.is_file() and each.suffix != ".db")
    return {str(each): each.read_bytes() for each in found}


def data_files(root: Path) -> dict[str, bytes]:
    return {path: each for path, each in stored(root).items() if path.endswith(".parquet")}


def in_pyiceberg(table: lake.IcebergTable) -> dict[int, str]:
    rows = StaticTable.from_metadata(table._handle.load().metadata_file).scan().to_arrow()
    return dict(zip(*rows.select(["id", "name"]).to_pydict().values(), strict=True))


@pytest.mark.parametrize("kind", ["path", "sql"])
def test_an_adopted_table_takes_changes_and_a_detached_one_is_as_before(kind, tmp_path):
    catalog = catalog_of_kind(kind, tmp_path)
    table = iceberg_table(catalog, options={"write.parquet.compression-codec": "gzip"})
    table.write(names(_1="a", _2="b"))
    table.write(names(_3="c"))
    before, schema, properties = data_files(tmp_path), table.schema, dict(table.properties)
    report = catalog.adopt_table("db.t", primary_key=["id"])
    assert (report.rows, report.made_required, report.change_store) == (3, ("id",), "db.t_change_")
    assert data_files(tmp_path) == before
    mixed = catalog.table("db.t")
    assert (mixed.format, mixed.primary_key, contents(mixed)) == (
        "mixed",
        ["id"],
        {1: "a", 2: "b", 3: "c"},
    )
    assert catalog.list_tables("db") == ["t"]
    mixed.write(names(_2="B", _4="d"))
    mixed.write(names(_1=None), kinds=["-D"])
    rows = {2: "B", 3: "c", 4: "d"}
    assert contents(mixed) == rows
    assert catalog.adopt_table("db.t", primary_key=["id"]).rows is None
    mixed.compact(strategy="full")
    before = {path: each for path, each in data_files(tmp_path).items() if "t_change_" not in path}
    detached = catalog.detach_table("db.t")
    assert (detached.merged, detached.files > 0) == (False, True)
    assert data_files(tmp_path) == before
    plain = catalog.table("db.t")
    assert isinstance(plain, lake.IcebergTable)
    assert contents(plain) == in_pyiceberg(plain) == rows
    assert dict(plain.properties) == properties
    assert plain.schema.fields == schema.fields
    assert catalog._metastore.tables("db") == ["t"]
    plain.write(names(_9="plain"))
    assert contents(adopted(catalog)) == {**rows, 9: "plain"}


def test_changes_outside_of_the_directory_are_counted_as_kept(tmp_path):
    """A directory catalog deletes the directory of the change store, and nothing else."""
    warehouse, outside = tmp_path / "wh", tmp_path / "elsewhere"
    new_table(new_catalog(warehouse))
    catalog = lake.open_catalog(
        str(warehouse), format="iceberg", options={"external-roots": str(outside)}
    )
    catalog.alter_table("db.t", lake.set_option("write.data.path", outside.as_uri()))
    table = catalog.table("db.t")
    table.write(names(_1="a", _2="b"))
    changes = {*stored(outside)}
    table.compact(strategy="full")
    before = {*stored(outside)}
    assert catalog.plan_drop_table("db.t", purge=True).outside >= len(changes)
    planned = catalog.detach_table("db.t", dry_run=True)
    done = catalog.detach_table("db.t")
    assert (planned.files, planned.outside) == (done.files, done.outside)
    assert done.outside == len(changes) > 0
    kept = f"; kept {done.outside} files of the change store outside of its directory ("
    assert kept in done.sentence
    assert changes <= {*stored(outside)} <= before


def test_changes_after_a_second_adoption_are_newer_than_the_files_of_the_first(catalog):
    """Names of base files have transactions, and snapshots those of batches, of the change store
    that was dropped.
    """
    table = new_table(catalog)
    for number in range(5):
        table.write(names(_1=f"{number}", _2="b"))
    with table.begin() as batch:
        batch.overwrite(names(_1="x", _2="y"), "table")
    table.compact(strategy="full")
    catalog.detach_table("db.t")
    again = adopted(catalog)
    again.write(names(_1=None), kinds=["-D"])
    again.write(names(_2="z"))
    assert contents(again) == {2: "z"}
    batch = again.begin()
    again.write(names(_2="stream"))
    again.compact(strategy="full")  # must wait for the batch
    batch.write(names(_2="batch", _3="c"))
    assert contents(again) == {2: "stream", 3: "c"}
    again.compact(strategy="full")
    assert contents(again) == contents(again.base) == {2: "stream", 3: "c"}


def test_a_table_whose_history_has_expired_is_adopted(catalog):
    table = iceberg_table(catalog)
    for number in range(3):
        table.write(names(**{f"_{number}": "a"}))
    table.expire_snapshots(older_than="0 s", retain_min=1)
    mixed = adopted(catalog)
    mixed.write(names(_0="b"))
    mixed.expire_snapshots(older_than="0 s")
    assert contents(mixed) == {0: "b", 1: "a", 2: "a"}


def test_deletes_of_the_table_apply_and_partitions_have_keys_of_their_own(catalog):
    columns = [*COLUMNS, ("day", "STRING")]
    table = iceberg_table(catalog, columns, partition_by=["day"])
    rows = pa.table({"id": [1, 1, 2, 3], "name": list("abcd"), "day": ["x", "y", "x", "x"]})
    table.write(rows)
    table.delete("id = 3")
    mixed = adopted(catalog)
    mixed.write(pa.table({"id": [1], "name": ["A"], "day": ["x"]}))
    found = sorted(tuple(each.values()) for each in mixed.scan().to_arrow().to_pylist())
    assert found == [(1, "A", "x"), (1, "b", "y"), (2, "c", "x")]


def test_a_detach_keeps_that_written_rows_replace_no_rows(catalog):
    """An adoption sets the property to true if the table does not have it."""
    columns = [("id", "BIGINT"), ("name", "STRING")]
    options = {"write.upsert.enabled": "false"}
    table = catalog.create_table(
        "db.t", columns, format="mixed", primary_key=["id"], options=options
    )
    table.write(names(_1="a"))
    catalog.detach_table("db.t", merge=True)
    assert catalog.table("db.t").properties["write.upsert.enabled"] == "false"
    again = adopted(catalog)
    again.write(names(_1="b"))
    assert sorted(again.scan(["name"]).to_arrow()["name"].to_pylist()) == ["a", "b"]


def test_a_version_field_counts_again_after_a_second_adoption(catalog):
    columns = [*COLUMNS, ("version", "BIGINT")]
    catalog.create_table(
        "db.t",
        columns,
        format="mixed",
        primary_key=["id"],
        options={"lake.version-field": "version"},
    )

    def row(name: str, version: int) -> pa.Table:
        return pa.table({"id": [1], "name": [name], "version": [version]})

    catalog.table("db.t").write(row("new", 5))
    catalog.detach_table("db.t", merge=True)
    again = adopted(catalog)
    again.write(row("old", 4))
    assert contents(again) == {1: "new"}
    again.write(row("newer", 6))
    assert contents(again) == {1: "newer"}


def test_the_key_is_by_default_the_identifier_fields(catalog):
    iceberg_table(catalog, [("id", "BIGINT NOT NULL"), ("name", "STRING")], primary_key=["id"])
    report = catalog.adopt_table("db.t")
    assert (report.primary_key, report.made_required) == (("id",), ())


def test_a_dry_run_checks_everything_and_changes_nothing(catalog, tmp_path):
    iceberg_table(catalog).write(names(_1="a"))
    before = stored(tmp_path)
    report = catalog.adopt_table("db.t", primary_key=["id"], dry_run=True)
    assert report.sentence.startswith("db.t would become a Mixed table with the key id")
    assert stored(tmp_path) == before
    adopted(catalog).write(names(_2="b"))
    before = stored(tmp_path)
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"run `lake --format iceberg compact db\.t --strategy full -w",
    ):
        catalog.detach_table("db.t", dry_run=True)
    assert stored(tmp_path) == before
    catalog.table("db.t").compact(strategy="full")
    before = stored(tmp_path)
    assert "would delete 6 files" in catalog.detach_table("db.t", dry_run=True).sentence
    assert stored(tmp_path) == before


@pytest.mark.parametrize(
    ("rows", "key", "reason"),
    [
        ({"_1": "a", "_2": "a"}, ["name"], "2 rows share their key with another row, such as"),
        ({"_1": "a", "_2": None}, ["name"], "key column 'name': rows of .* have a null"),
        ({}, ["nmae"], "names 'nmae', but the columns are id, name; did you mean 'name'"),
        ({}, [], "so there is nothing to adopt in 'db.t'"),
        ({}, None, "has no identifier fields that could be its key"),
    ],
)
def test_a_table_without_such_a_key_is_refused(rows, key, reason, catalog, tmp_path):
    table = iceberg_table(catalog)
    table.write(names(**rows))
    before = stored(tmp_path)
    with pytest.raises(lake.InvalidRequestError, match=reason):
        catalog.adopt_table("db.t", primary_key=key)
    assert stored(tmp_path) == before
    assert catalog._metastore.tables("db") == ["t"]


def test_tables_that_a_mixed_table_cannot_be_are_refused(catalog):
    for version, reason in ((1, "no sequence numbers: upgrade it"), (3, "write its rows to a new")):
        iceberg_table(catalog, format_version=version)
        with pytest.raises(lake.UnsupportedError, match=reason):
            catalog.adopt_table("db.t", primary_key=["id"])
        catalog.drop_table("db.t", purge=True)
    table = iceberg_table(catalog)
    table.write(names(_1="a"))
    table.branches.create("dev")
    with pytest.raises(lake.InvalidRequestError, match="has the branch 'dev'"):
        catalog.adopt_table("db.t", primary_key=["id"])
    table.branches.delete("dev")
    catalog.create_table("db.t_change_", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match="it is not a change store"):
        catalog.adopt_table("db.t", primary_key=["id"])
    catalog.drop_table("db.t_change_", purge=True)
    adopted(catalog)
    with pytest.raises(lake.AlreadyExistsError, match="key id, not name: to give it another key"):
        catalog.adopt_table("db.t", primary_key=["name"])
    with pytest.raises(lake.AlreadyExistsError, match="already the change store of a"):
        catalog.adopt_table("db.t_change_", primary_key=["id"])


def test_older_partitions_and_changed_types_of_the_key_are_refused(catalog):
    table = iceberg_table(catalog, [("id", "INT"), ("name", "STRING")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "name": ["a"]}))
    spec = PartitionSpec(1, (PartitionField((2,), 1000, "name", "identity"),))

    def partitioned(loaded: Any) -> Any:
        specs = (*loaded.metadata.partition_specs, spec)
        return replace(
            loaded.metadata, partition_specs=specs, default_spec_id=1, last_partition_id=1000
        )

    commit_metadata(table._handle, partitioned)
    with pytest.raises(lake.InvalidRequestError, match="1 of its live files has another"):
        catalog.adopt_table("db.t", primary_key=["id"])
    table.compact(strategy="full", rewrite_all=True)
    catalog.adopt_table("db.t", primary_key=["id"], dry_run=True)
    catalog.alter_table("db.t", lake.update_column_type("id", "BIGINT"))
    with pytest.raises(lake.UnsupportedError, match=r"an adoption of .* int and long"):
        catalog.adopt_table("db.t", primary_key=["id"])


def test_files_from_before_a_rename_of_a_partition_field_are_refused(catalog):
    table = iceberg_table(catalog, partition_by=["name"])
    table.write(names(_1="a"))

    def renamed(loaded: Any) -> Any:
        [spec] = loaded.metadata.partition_specs
        field = replace(spec.fields[0], name="label")
        specs = (spec, PartitionSpec(1, (field,)))
        return replace(loaded.metadata, partition_specs=specs, default_spec_id=1)

    commit_metadata(table._handle, renamed)
    with pytest.raises(lake.InvalidRequestError, match=r"has another partition spec"):
        catalog.adopt_table("db.t", primary_key=["id"])
    table.compact(strategy="full", rewrite_all=True)
    mixed = adopted(catalog)
    mixed.write(names(_1="a", _2="b"))
    mixed.compact(strategy="full")
    assert contents(mixed.base) == {1: "a", 2: "b"}


def test_files_of_an_earlier_key_are_refused_until_they_are_rewritten(catalog):
    mixed = new_table(catalog)
    mixed.write(names(_1="b", _2="c", _3="d", _4="a"))
    mixed.compact(strategy="full")
    catalog.detach_table("db.t")
    with pytest.raises(lake.InvalidRequestError, match="the earlier Mixed table had another key"):
        catalog.adopt_table("db.t", primary_key=["name"])
    catalog.table("db.t").compact(strategy="full", rewrite_all=True)
    again = adopted(catalog, "name")
    again.write(names(_9="a"))
    assert contents(again) == {1: "b", 2: "c", 3: "d", 9: "a"}


@pytest.mark.parametrize("wrong", [5, "id", [], {"id": 1}])
def test_a_key_that_is_no_list_of_columns_is_refused(wrong, catalog):
    iceberg_table(catalog)
    with pytest.raises(lake.InvalidRequestError, match="must be a list with one or more columns"):
        catalog.adopt_table("db.t", primary_key=wrong)


def test_a_table_that_changes_while_its_keys_are_checked_is_not_adopted(catalog, monkeypatch):
    table = iceberg_table(catalog)
    table.write(names(_1="a"))
    check = adoption.check_existing_keys

    def then_write(state: Any) -> int:
        found = check(state)
        table.write(names(_1="duplicate"))
        return found

    monkeypatch.setattr(adoption, "check_existing_keys", then_write)
    with pytest.raises(lake.CommitConflictError, match="since its keys were checked"):
        catalog.adopt_table("db.t", primary_key=["id"])
    assert catalog._metastore.tables("db") == ["t"]
    assert "write.upsert.enabled" not in catalog.table("db.t").properties


def test_a_detach_waits_for_batches_and_consumers(catalog):
    iceberg_table(catalog).write(names(_1="a"))
    mixed = adopted(catalog)
    batch = mixed.begin()
    with pytest.raises(lake.InvalidRequestError, match=r"a batch may still commit \(transaction 1"):
        catalog.detach_table("db.t", merge=True)
    batch.abort()
    mixed.consumers.set("mirror", after=mixed.position())
    mixed.write(names(_2="b"))
    before = mixed.base.latest_snapshot()
    with pytest.raises(lake.InvalidRequestError, match="the consumer 'mirror' reads its changes"):
        catalog.detach_table("db.t", merge=True)
    assert mixed.base.latest_snapshot() == before, "a refused call merges nothing"
    mixed.consumers.reset("mirror")
    assert catalog.detach_table("db.t", merge=True).merged
    assert contents(catalog.table("db.t")) == {1: "a", 2: "b"}
    with pytest.raises(lake.InvalidRequestError, match="nothing to detach"):
        catalog.detach_table("db.t")


def test_a_detach_merges_more_changes_than_one_compaction(catalog):
    most = {"self-optimizing.max-file-count": "2"}
    table: Any = catalog.create_table(
        "db.t", COLUMNS, format="mixed", primary_key=["id"], options=most
    )
    for key in range(5):
        table.write(names(**{f"_{key}": "a"}))
    assert catalog.detach_table("db.t", merge=True).merged
    assert contents(catalog.table("db.t")) == dict.fromkeys(range(5), "a")


def test_a_writer_of_a_table_that_is_detached_meanwhile_writes_nothing(catalog, monkeypatch):
    iceberg_table(catalog).write(names(_1="a"))
    mixed = adopted(catalog)
    batch = mixed.begin()
    batch.abort()
    metastore = type(catalog._metastore)
    remove = metastore.remove_table

    def died(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(metastore, "remove_table", died)
    with pytest.raises(KeyboardInterrupt):
        catalog.detach_table("db.t")
    monkeypatch.setattr(metastore, "remove_table", remove)
    with pytest.raises(lake.LakeError):
        mixed.write(names(_2="lost"))
    with pytest.raises(lake.AlreadyExistsError, match="run detach_table"):
        catalog.adopt_table("db.t", primary_key=["id"])
    catalog.detach_table("db.t")
    assert catalog._metastore.tables("db") == ["t"]
    assert contents(catalog.table("db.t")) == {1: "a"}


@pytest.mark.parametrize("kind", ["path", "sql"])
def test_an_interrupted_detach_takes_no_changes_until_it_is_repeated(kind, tmp_path, monkeypatch):
    catalog = catalog_of_kind(kind, tmp_path)
    iceberg_table(catalog).write(names(_1="a"))
    mixed = adopted(catalog)
    release = detach_pair.release_base

    def died(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(detach_pair, "release_base", died)
    with pytest.raises(KeyboardInterrupt):
        catalog.detach_table("db.t")
    monkeypatch.setattr(detach_pair, "release_base", release)
    assert contents(catalog.table("db.t")) == {1: "a"}
    at = f" -w {tmp_path.as_uri()}" if kind == "path" else ""
    for write in (lambda: mixed.write(names(_2="b")), mixed.begin):
        with pytest.raises(
            lake.CommitConflictError, match=rf"detached .* `lake --format iceberg detach db\.t{at}`"
        ):
            write()
    catalog.detach_table("db.t")
    assert isinstance(catalog.table("db.t"), lake.IcebergTable)


def test_a_detach_completes_an_alter_that_died_between_the_stores(catalog, monkeypatch):
    iceberg_table(catalog).write(names(_1="a"))
    adopted(catalog)

    def died(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StorePair, "complete_alter", died)
        with pytest.raises(KeyboardInterrupt):
            catalog.alter_table("db.t", lake.add_column("note", "STRING"))
    catalog.detach_table("db.t")
    plain = catalog.table("db.t")
    assert (plain.schema.column_names, dict(plain.properties)) == (["id", "name", "note"], {})
    assert plain.scan().to_arrow().to_pylist() == [{"id": 1, "name": "a", "note": None}]


def test_random_lives_of_a_table_agree_with_a_dict(tmp_path):
    for seed in range(SEED, SEED + count(1, whole=20)):
        chance, catalog = Random(seed), new_catalog(tmp_path / str(seed))
        table: Any = iceberg_table(catalog)
        rows: dict[int, str] = {}
        for number in range(14):
            ids = chance.sample(range(8), chance.randint(1, 4))
            is_mixed = isinstance(table, lake.MixedTable)
            step = chance.choice(["write", "write", "write", "turn", "compact"])
            if step == "turn" and is_mixed:
                catalog.detach_table("db.t", merge=True)
            elif step == "turn":
                catalog.adopt_table("db.t", primary_key=["id"])
            elif step == "compact":
                table.compact(strategy="full")
            else:
                new = {each: f"{number}" for each in ids if is_mixed or each not in rows}
                gone = [each for each in new if each in rows and chance.random() < 0.4]
                given = names(**{f"_{each}": value for each, value in new.items()})
                if is_mixed:
                    table.write(given, kinds=["-D" if each in gone else "+U" for each in new])
                else:
                    table.write(given)
                rows |= new
                rows = {each: value for each, value in rows.items() if each not in gone}
            table = catalog.table("db.t")
            assert contents(table) == rows, (seed, number, step)


def test_a_table_of_a_rest_service_is_adopted_and_detached_once(tmp_path):
    """The service begins the numbers of each change store with 1, so a second one is refused."""
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        place = {"metastore": "rest", "uri": server.uri}
        catalog = lake.open_catalog(str(tmp_path), format="iceberg", **place)
        catalog.create_database("db")
        iceberg_table(catalog).write(names(_1="a", _2="b"))
        mixed = adopted(catalog)
        mixed.write(names(_1="c"))
        assert contents(mixed) == {1: "c", 2: "b"}
        catalog.detach_table("db.t", merge=True)
        plain = catalog.table("db.t")
        assert (contents(plain), dict(plain.properties)) == ({1: "c", 2: "b"}, {})
        with pytest.raises(lake.UnsupportedError, match="does not have the sequence numbers"):
            catalog.adopt_table("db.t", primary_key=["id"])
        assert catalog._metastore.tables("db") == ["t"]


def test_commands_adopt_and_detach_tables(tmp_path):
    iceberg_table(new_catalog(tmp_path)).write(names(_1="a"))

    def lake_command(*words: str) -> str:
        shown = CliRunner().invoke(app, ["-w", str(tmp_path), "--format", "iceberg", *words])
        assert shown.exit_code == 0, shown.output or str(shown.exception)
        return shown.output

    key = ["--primary-key", "id"]
    assert "would become a Mixed table" in lake_command("adopt", "db.t", *key, "--dry-run")
    [report] = json.loads(lake_command("adopt", "db.t", *key, "--json"))
    assert (report["rows"], report["primary_key"], report["dry_run"]) == (1, ["id"], False)
    words = ["-w", str(tmp_path), "--format", "iceberg", "detach", "db.t", "--abandon-changes"]
    refused = CliRunner().invoke(app, words)  # before the question, which needs --yes here
    assert "change store 'db.t_change_' exists" in str(refused.exception)
    assert "would be an ordinary" in lake_command("detach", "db.t", "--dry-run")
    assert "db.t is now an ordinary Iceberg table" in lake_command("detach", "db.t", "--yes")
    refused = CliRunner().invoke(app, ["-w", str(tmp_path), "adopt", "db.t", *key])
    assert "lake --format iceberg adopt" in str(refused.exception)


@pytest.mark.parametrize("name", ["a/b", "a\\b"])
def test_no_mixed_table_is_made_whose_change_store_cannot_be_named(tmp_path, name):
    catalog = catalog_of_kind("sql", tmp_path)
    plain = catalog.create_table(f"db.{name}", COLUMNS)
    plain.write(pa.table({"id": [1], "name": ["a"]}))
    for dry_run in (True, False):
        with pytest.raises(
            lake.InvalidRequestError,
            match=r"cannot be the name of a Mixed table, .* Nothing was written",
        ):
            catalog.adopt_table(f"db.{name}", primary_key=["id"], dry_run=dry_run)
    with pytest.raises(lake.InvalidRequestError, match=r"cannot be the name of a Mixed table"):
        catalog.create_table(f"db.x{name}", COLUMNS, format="mixed", primary_key=["id"])
    assert catalog.list_tables("db") == [name]
    assert plain.scan().to_arrow().num_rows == catalog.table(f"db.{name}").scan().count() == 1

"""Commands take the directory of an Iceberg table; those without meaning for it refuse it."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.cli.iceberg_advice import INSTEAD, INSTEAD_FOR_MIXED
from lakeformat.iceberg.create.new_table import create_at_path, location_at, new_table_metadata
from lakeformat.storage import LocalStorage
from tests.golden.iceberg import iceberg_table
from tests.golden.iceberg_orders import IcebergOrders
from tests.golden.referee import referee_run
from tests.unit.catalog.iceberg.small_table import make_small_table
from tests.unit.iceberg.growing_table import GrowingTable
from tests.unit.iceberg.path_table import appended

runner = CliRunner()


def show(*arguments: str) -> str:
    shown = runner.invoke(app, [*arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.output


def refusal(*arguments: str) -> str:
    shown = runner.invoke(app, [*arguments])
    assert isinstance(shown.exception, lake.UnsupportedError), shown.output
    return str(shown.exception)


def location(name: str) -> str:
    return iceberg_table(name).location


def test_a_scan_prints_the_rows_that_are_not_deleted():
    lines = show("scan", location("v3_deletion_vectors")).splitlines()
    assert lines[0].split() == ["id", "v"]
    assert sorted(line.split()[0] for line in lines[1:]) == ["3", "4", "5"]


def test_changes_print_the_rows_that_commits_appended():
    second = iceberg_table("six_commits").expected["snapshots"][1]["snapshot_id"]
    shown = show("changes", location("six_commits"), "--after", str(second), "--json")
    rows = [json.loads(line) for line in shown.splitlines()]
    assert {row["rowkind"] for row in rows} == {"+I"}
    assert len(rows) == 40


def test_changes_print_deleted_rows_and_can_leave_them_out():
    shown = show("changes", location("cow_dml"), "--after", "0", "--where", "id = 4", "--json")
    assert [json.loads(line)["rowkind"] for line in shown.splitlines()] == ["+I", "-D"]
    appended = show("changes", location("cow_dml"), "--after", "0", "--mode", "appends", "--json")
    assert {json.loads(line)["rowkind"] for line in appended.splitlines()} == {"+I"}


def test_a_table_is_sorted_by_keys_with_commas(tmp_path):
    orders = IcebergOrders(tmp_path)
    keys = ["--order-by", "bucket(4, id),id desc", "--order-by", "id nulls last"]
    planned = show("compact", str(orders.root), *keys, "--dry-run").splitlines()
    assert planned[0].startswith("sort compaction of file://")
    assert ", by bucket[4](id) asc nulls first, id desc nulls last, id asc nulls last" in planned[0]


def test_a_table_is_compacted(tmp_path):
    orders = IcebergOrders(tmp_path)
    rows = lake.open_table(str(orders.root)).scan().count()
    planned = show("compact", str(orders.root), "--dry-run").splitlines()
    assert planned[0].startswith("full compaction of file://")
    assert len(planned) > 1
    shown = show("compact", str(orders.root))
    assert "published as snapshot" in shown
    assert lake.open_table(str(orders.root)).scan().count() == rows
    assert show("compact", str(orders.root)) == "no action needed: no group of files is due\n"
    assert "group" in show("compact", str(orders.root), "--strategy", "minor", "--dry-run")


def test_rows_of_files_are_written(tmp_path):
    make_small_table(tmp_path / "orders")
    (tmp_path / "rows.csv").write_text("number\n3\n4\n")
    columns = ("--columns", "id=number")
    said = show("write", str(tmp_path / "orders"), str(tmp_path / "rows.csv"), *columns)
    assert said.startswith("2 rows: published as snapshot ")
    rows = [
        json.loads(line)["id"]
        for line in show("scan", str(tmp_path / "orders"), "--json").splitlines()
    ]
    assert sorted(rows) == [1, 2, 3, 4]
    replaced = show(
        "write",
        str(tmp_path / "orders"),
        str(tmp_path / "rows.csv"),
        *columns,
        "--overwrite",
        "table",
    )
    assert replaced.startswith("2 rows: published")
    assert lake.open_table(str(tmp_path / "orders")).scan().count() == 2


def test_a_table_is_maintained(tmp_path):
    orders = IcebergOrders(tmp_path)
    planned = show("maintain", str(orders.root), "--dry-run")
    assert "would compact 8 files in 2 groups" in planned
    assert "delete files" in planned
    assert planned.endswith(f"to do it: lake maintain {orders.root}\n")
    shown = show("maintain", str(orders.root))
    assert "compacted 8 files of " in shown
    assert shown.endswith("/shop/orders is healthy\n")
    catalog = ("-w", str(tmp_path), "--catalog-option", "format=iceberg")
    assert "no step was needed" in show(*catalog, "maintain", "shop")


def test_the_tables_of_a_database_are_compacted(tmp_path):
    IcebergOrders(tmp_path)
    compact = ("-w", str(tmp_path), "--catalog-option", "format=iceberg", "compact-database")
    assert "full compaction of file://" in show(*compact, "shop", "--dry-run")
    assert "shop.orders: " in (shown := show(*compact, "shop"))
    assert " became 2 files of " in shown


def test_the_snapshots_of_a_database_expire(tmp_path):
    IcebergOrders(tmp_path)
    named = ("-w", str(tmp_path), "--catalog-option", "format=iceberg")
    expire = (*named, "expire", "shop", "--older-than", "1 ms")
    assert "would delete " in show(*expire, "--dry-run")
    [outcome] = json.loads(show(*expire, "--json"))
    assert (outcome["table"], len(outcome["report"]["snapshots"])) == ("shop.orders", 4)


def test_manifests_are_merged(tmp_path):
    orders = str(IcebergOrders(tmp_path).root)
    assert "would merge manifests: " in show("rewrite-manifests", orders, "--dry-run")
    assert "published as snapshot" in show("rewrite-manifests", orders)
    assert "no manifest needs merging" in show("rewrite-manifests", orders)


def test_distinct_values_are_counted(tmp_path):
    make_small_table(tmp_path / "orders")
    lines = show("analyze", str(tmp_path / "orders"), "--column", "id").splitlines()
    assert lines[0].split()[:2] == ["column", "distinct"]
    assert lines[-1].startswith("statistics published: 1 column of 2 rows of snapshot ")


def test_delete_files_are_merged(tmp_path):
    referee_run("rewrite_position_deletes_dangling", tmp_path / "t")
    table = str(tmp_path / "t")
    planned = show("compact-deletes", table, "--dry-run")
    assert planned == "would remove 1 delete file that no data file needs\n"
    assert "published as snapshot" in show("compact-deletes", table, "--convert-equality")
    assert show("compact-deletes", table) == "no delete file needs merging\n"


def test_delete_files_of_other_formats_are_refused(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    table.branches.create("dev")
    branch = "shop.orders$branch_dev"
    message = refusal("compact-deletes", branch, "--warehouse", str(tmp_path))
    assert "is a Paimon table, but `lake compact-deletes` works only on Iceberg tables" in message
    assert message.endswith(f"run `lake compact '{branch}'`, which also compacts data files")


def test_consumers_are_set_listed_and_deleted(tmp_path):
    table = str(GrowingTable(tmp_path, "cow_dml", 4).root)
    said = show("consumer", "set", table, "job", "--next", "2")
    assert said == "consumer 'job' reads the snapshot of sequence number 2 next\n"
    [row] = json.loads(show("consumer", "list", table, "--json"))
    assert (row["consumer_id"], row["next_snapshot_id"], row["behind"]) == ("job", 2, 2)
    assert (
        show("consumer", "clear", table, "--including", "j.*") == "deleted job; kept 0 consumers\n"
    )


def test_files_show_their_partition_and_their_path_below_the_table():
    lines = show("files", location("hour_action"), "--limit", "1").splitlines()
    assert lines[0].split()[:3] == ["partition", "content", "file_format"]
    assert '"action": "click"' in lines[1]
    assert lines[1].split()[-1].startswith("data/event_time_hour=2020-06-04-19/action=click/")


def test_files_print_every_column_for_programs():
    [row] = json.loads(show("files", location("hour_action"), "--limit", "1", "--json"))
    assert row["readable_metrics"]["id"]["value_count"] == 5
    assert row["lower_bounds"][0] == [1, "AQAAAAAAAAA="]


def test_snapshots_of_one_are_those_of_the_whole_table():
    found = json.loads(show("snapshots", location("six_commits"), "--json"))
    assert [row["operation"] for row in found] == ["append"] * 6
    assert show("snapshots", location("six_commits")).splitlines()[0].split()[0] == "committed_at"


@pytest.mark.parametrize(
    ("command", "names"), [("tags", {"first", "rel/1.0"}), ("branches", {"main", "dev", "ff"})]
)
def test_tags_and_branches_are_the_references(command, names):
    found = json.loads(show(command, location("branches_tags"), "--json"))
    assert {row["name"] for row in found} == names


def test_options_are_the_properties():
    found = json.loads(show("options", location("v3_deletion_vectors"), "--json"))
    assert {"key": "write.delete.mode", "value": "merge-on-read"} in found


def test_manifests_and_partitions_take_a_snapshot():
    first = str(iceberg_table("six_commits").expected["snapshots"][0]["snapshot_id"])
    for command in ("manifests", "partitions"):
        shown = show(command, location("six_commits"), "--snapshot", first, "--json")
        assert len(json.loads(shown)) == 1


def test_tags_branches_and_rollbacks_change_the_table(tmp_path):
    root, storage = str(tmp_path / "t"), LocalStorage()
    columns = pa.schema([("id", pa.int64())])
    metadata = new_table_metadata(location_at(storage, root), columns)
    create_at_path(storage, root, appended(appended(metadata, "a"), "b", snapshot_id=2))
    made = show("tag", "create", root, "v1", "--retain", "7 d")
    assert made.startswith("tag 'v1' created at snapshot 2 (sequence number 2, committed 20")
    assert show("tag", "list", root).split()[:3] == ["tag", "snapshot", "committed"]
    assert "branch 'dev' created" in show("branch", "create", root, "dev", "--tag", "v1")
    assert show("branch", "list", root).splitlines()[1].split()[:2] == ["dev", "2"]
    assert "returned to snapshot" in show("rollback", root, "--snapshot", "1")
    assert "main received 1 snapshot of" in show("branch", "fast-forward", root, "dev")
    assert show("tag", "expire", root) == "no tag has expired\n"
    assert "deleted the tag 'v1'" in show("tag", "delete", root, "v1", "--yes")
    assert show("expire", root, "--dry-run").splitlines()[-1] == "no snapshot would expire"
    [report] = json.loads(show("expire", root, "--json"))
    assert (report["snapshots"], report["files"]) == ([], {})


ARGUMENTS = {
    "clone": ["shop.copy"],
    "clone-database": ["--to", "elsewhere"],
    "migrate": ["shop.new"],
    "partition done": ["dt=1"],
    "partition drop": ["dt=1"],
    "partition expire": ["--older-than", "1 d"],
    "rescale": ["--bucket", "4"],
}
OF_CATALOGS = ("clone-database", "migrate", "repair")


@pytest.mark.parametrize("command", INSTEAD)
def test_a_command_without_meaning_is_refused_with_what_to_do(tmp_path, command):
    more = ARGUMENTS.get(command, [])
    if command in OF_CATALOGS:
        make_small_table(tmp_path / "shop/orders")
        named = ["--warehouse", str(tmp_path), "--format", "iceberg"]
        message = refusal(*named, *command.split(), "shop", *more)
    else:
        message = refusal(*command.split(), location("v1_append"), *more)
    assert "Iceberg table" in message
    assert f"`lake {command}`" in message
    place = location("v1_append")
    assert (
        message.replace(f"file://{place}", "TABLE")
        .replace(place, "TABLE")
        .endswith(INSTEAD[command])
    )


def test_properties_are_set_and_removed_as_options_by_name_and_by_path(warehouse):
    named = ["--warehouse", warehouse, "--format", "iceberg"]
    path = f"{warehouse}/shop/orders"
    assert show(*named, "set-option", "shop.orders", "a=b") == (
        "option 'a' of shop.orders: not set before, 'b' now\n"
    )
    [report] = json.loads(show("set-option", path, "a=c", "d=e", "--json"))
    assert (report["before"], report["options"]) == ({"a": "b", "d": None}, {"a": "c", "d": "e"})
    assert show("unset-option", path, "a") == f"option 'a' of {path}: 'c' before, not set now\n"
    refused = runner.invoke(app, ["set-option", path, "x=y", "format-version=3"])
    assert "'format-version' of" in str(refused.exception)
    assert "x" not in lake.open_table(path).properties


@pytest.mark.parametrize("name", ["shop", "shop.orders"])
def test_orphans_are_searched_in_the_directory_of_the_table_alone(warehouse, name):
    named = ["--warehouse", warehouse, "--format", "iceberg", "orphans", name]
    shown = runner.invoke(app, [*named, "--external-paths"])
    assert "does not take --external-paths: leave it out" in (
        str(shown.exception).replace("external_paths", "--external-paths") + shown.output
    )


@pytest.mark.parametrize("command", INSTEAD)
def test_each_advice_names_commands_that_work_on_iceberg_tables(command):
    for words in re.findall(r"`lake ([a-z -]+?)(?: [A-Z-].*?)?`", INSTEAD[command]):
        assert words not in INSTEAD
        assert runner.invoke(app, [*words.split(), "--help"]).exit_code == 0


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> str:
    """The directory of a Mixed table with one row."""
    root = tmp_path_factory.mktemp("mixed")
    catalog = lake.open_catalog(str(root), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL")]
    table = catalog.create_table("shop.orders", columns, format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1]}))
    return f"{root}/shop/orders"


@pytest.mark.parametrize("command", INSTEAD_FOR_MIXED)
def test_a_command_without_meaning_for_a_mixed_table_is_refused_with_what_to_do(mixed, command):
    advice = INSTEAD_FOR_MIXED[command]
    message = refusal(*command.split(), mixed, *ARGUMENTS.get(command, []))
    assert "a Mixed table" in message
    assert message.replace(f"file://{mixed}", "TABLE").replace(mixed, "TABLE").endswith(advice)
    for words in re.findall(r"`lake ([a-z -]+?)(?: [A-Z-].*?)?`", advice):
        assert words not in INSTEAD_FOR_MIXED
        assert runner.invoke(app, [*words.split(), "--help"]).exit_code == 0


@pytest.fixture
def warehouse(tmp_path) -> str:
    make_small_table(tmp_path / "shop/orders")
    return str(tmp_path)


def test_tables_of_a_catalog_are_named(warehouse):
    named = ["--warehouse", warehouse, "--format", "iceberg"]
    [table] = json.loads(show(*named, "tables", "--json"))
    assert table == {"database": "shop", "table": "orders"}
    assert show(*named, "scan", "shop.orders").split() == ["id", "1", "2"]
    assert len(json.loads(show(*named, "files", "shop.orders", "--json"))) == 1


def test_the_health_of_a_table_and_of_a_database_is_printed(warehouse):
    named = ["--warehouse", warehouse, "--format", "iceberg"]
    lines = show(*named, "health", "shop.orders").splitlines()
    assert ["verdict", "healthy"] in [line.split() for line in lines]
    assert ["manifests", "1"] in [line.split()[:2] for line in lines]
    [line] = json.loads(show(*named, "health", "shop", "--json"))
    assert (line["verdict"], line["files"]["files"]) == ("healthy", 1)
    assert line["table"] == "shop.orders"
    row = show(*named, "health", "shop").splitlines()[1].split()
    assert row[:4] == ["shop.orders", "healthy", "100", "1"]


def test_unknown_files_of_a_database_are_refused_before_a_table_is_read(warehouse):
    message = refusal("-w", warehouse, "--format", "iceberg", "health", "shop", "--unknown")
    assert "--unknown is for Paimon tables" in message


def test_unknown_files_are_refused_with_the_command_that_lists_them():
    place = location("v1_append")
    message = refusal("health", place, "--unknown")
    assert "an Iceberg table" in message
    assert f"`lake orphans file://{place}`" in message


def test_partitions_with_deletes_are_listed_by_health():
    lines = show("health", location("mor_position_deletes")).splitlines()
    rows = [line.split() for line in lines]
    assert ["p=x", "0", "4", "3.3", "KiB", "5", "4", "2", "2"] in rows
    assert ["deletes", "3", "position", "delete", "files,"] in [row[:5] for row in rows]


def test_rows_are_checked(warehouse):
    named = ["-w", warehouse, "--format", "iceberg", "check", "shop.orders"]
    assert "2 rows, expected at least 1" in show(*named, "--min-rows", "1", "--unique", "id")
    failed = runner.invoke(app, [*named, "--condition", "id > 1"], env={"COLUMNS": "200"})
    assert failed.exit_code == 1
    assert "1 of 2 rows does not meet the condition, such as id=1" in failed.output


def test_a_system_table_of_a_catalog_has_a_command_of_its_own(warehouse):
    shown = runner.invoke(
        app, ["-w", warehouse, "--format", "iceberg", "scan", "shop.orders$files"]
    )
    assert "`lake files shop.orders`" in str(shown.exception)


def test_the_environment_can_name_the_catalog(warehouse):
    environment = {"LAKE_WAREHOUSE": warehouse, "LAKE_FORMAT": "iceberg"}
    shown = runner.invoke(app, ["scan", "shop.orders"], env=environment)
    assert shown.output.split() == ["id", "1", "2"]


def test_a_mistyped_table_of_a_catalog_gets_the_nearest_name(warehouse):
    shown = runner.invoke(app, ["-w", warehouse, "--format", "iceberg", "scan", "shop.order"])
    assert isinstance(shown.exception, lake.NotFoundError)
    assert "did you mean 'shop.orders'?" in str(shown.exception)


def test_a_database_is_created_in_a_catalog(warehouse):
    show("-w", warehouse, "--format", "iceberg", "create-database", "new")
    assert lake.open_catalog(warehouse, format="iceberg").list_databases() == ["new", "shop"]


def test_a_table_is_created_and_renamed_in_a_catalog(tmp_path):
    uri = f"sqlite:///{tmp_path}/catalog.db"
    named = ["-w", str(tmp_path), "--format", "iceberg", "--metastore", "sql", "--uri", uri]
    show(*named, "create-database", "shop")
    [made] = json.loads(
        show(
            *(*named, "create-table", "shop.orders", "--json"),
            *("--column", "id BIGINT NOT NULL", "--column", "ts TIMESTAMP(6)"),
            *("--primary-key", "id", "--partition-by", "day(ts), bucket(16, id)"),
            *("--option", "format-version=3"),
        )
    )
    assert made["location"] == f"file://{tmp_path}/shop/orders"
    refused = runner.invoke(app, [*named, "rename-table", "shop.orders", "shop.old", "--force"])
    assert "--force has no meaning" in str(refused.exception)
    show(*named, "rename-table", "shop.orders", "shop.old")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="sql", uri=uri)
    metadata = catalog.table("shop.old")._handle.load().metadata
    assert metadata.format_version == 3
    assert [str(field.transform) for field in metadata.partition_specs[-1].fields] == [
        "day",
        "bucket[16]",
    ]


def test_a_table_is_dropped_after_a_dry_run(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    named = ["-w", str(tmp_path), "--format", "iceberg"]
    assert "purge=True to delete this directory" in refusal(*named, "drop-table", "shop.orders")
    drop = [*named, "drop-table", "shop.orders", "--purge"]
    planned = show(*drop, "--dry-run").splitlines()
    place = f"file://{tmp_path}/shop/orders"
    assert planned[0].startswith(f"table shop.orders at {place} would be removed from the catalog")
    assert planned[1] == "nothing was deleted"
    [plan] = json.loads(show(*drop, "--yes", "--json"))
    assert (plan["purge"], plan["dry_run"]) == (True, False)
    assert not (tmp_path / "shop/orders").exists()


def test_a_database_is_analyzed_and_dropped(tmp_path):
    for name in ("orders", "people"):
        make_small_table(tmp_path / "shop" / name)
    named = ["-w", str(tmp_path), "--format", "iceberg"]
    analyzed = show(*named, "analyze", "shop", "--dry-run")
    assert "shop.orders" in analyzed
    assert "shop.people" in analyzed
    drop = [*named, "drop-database", "shop", "--cascade", "--purge"]
    planned = show(*drop, "--dry-run").splitlines()
    assert [line.split()[1] for line in planned[:2]] == ["shop.orders", "shop.people"]
    assert planned[2:] == ["nothing was deleted"]
    plans = json.loads(show(*drop, "--yes", "--json"))
    assert [plan["table"] for plan in plans] == ["shop.orders", "shop.people"]
    assert not (tmp_path / "shop").exists()


def test_a_command_for_catalogs_of_paimon_tables_is_refused(warehouse):
    message = refusal("-w", warehouse, "--format", "iceberg", "repair")
    assert "is a catalog of Iceberg tables, on which `lake repair` does not work" in message


def test_advice_names_the_table_as_it_was_typed(tmp_path, mixed):
    make_small_table(tmp_path / "shop/orders")
    message = refusal("-w", str(tmp_path), "--format", "iceberg", "missing-files", "shop.orders")
    assert "`lake scan shop.orders` names the first missing file" in message
    message = refusal("analyze", mixed, "--partitions")
    assert "it needs no statistics" in message


def test_a_directory_has_no_format(warehouse):
    shown = runner.invoke(app, ["--format", "iceberg", "scan", f"{warehouse}/shop/orders"])
    assert "leave out --format" in str(shown.exception)


def test_a_warehouse_that_does_not_exist_is_named(warehouse):
    shown = runner.invoke(app, ["-w", f"{warehouse}/none", "--format", "iceberg", "tables"])
    assert isinstance(shown.exception, lake.NotFoundError)


def test_rows_are_deleted_and_get_new_values(tmp_path):
    root, storage = str(tmp_path / "t"), LocalStorage()
    columns = pa.schema([("id", pa.int64()), ("note", pa.string())])
    create_at_path(storage, root, new_table_metadata(location_at(storage, root), columns))
    table = lake.open_table(root)
    table.write(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    dry = show("delete", table.location, "--where", "id = 2", "--dry-run")
    assert dry.splitlines()[0] == "1 row would be deleted; nothing was changed"
    first, second = show("delete", table.location, "--where", "id = 2").splitlines()
    assert first.startswith("1 row deleted, published as snapshot ")
    assert second == "1 file with rows marked as deleted; 1 file read"
    show("update", table.location, "--where", "id = 3", "--set", "note=paid")
    assert table.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 3],
        "note": ["a", "paid"],
    }


def test_rows_of_files_replace_those_with_the_same_key(tmp_path):
    make_small_table(tmp_path / "orders")
    orders, rows = str(tmp_path / "orders"), tmp_path / "rows.csv"
    rows.write_text("id\n2\n3\n")
    said = show("write", orders, str(rows), "--upsert-by", "id")
    assert said.startswith("2 rows: 1 stored row replaced, published as snapshot ")
    assert sorted(lake.open_table(orders).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    rows.write_text("id,op\n2,-D\n4,+I\n")
    show("write", orders, str(rows), "--upsert-by", "id", "--kinds", "op")
    assert sorted(lake.open_table(orders).scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    both = ["--upsert-by", "id", "--overwrite", "table"]
    shown = runner.invoke(app, ["write", orders, str(rows), *both])
    assert "--upsert-by and --overwrite exclude each other" in str(shown.exception)
    both = ["--upsert-by", "id", "--conflict", "transaction-order"]
    shown = runner.invoke(app, ["write", orders, str(rows), *both])
    assert "--upsert-by excludes --conflict: leave out either" in str(shown.exception)


def test_a_key_is_refused_for_rows_of_a_paimon_table(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    (tmp_path / "rows.csv").write_text("id\n2\n")
    rows = str(tmp_path / "rows.csv")
    message = refusal("write", table.location, rows, "--upsert-by", "id")
    assert "has no operation 'upsert': write(rows) replaces rows by the primary key" in message


@pytest.mark.parametrize(("form", "kind"), [("iceberg", pa.uuid()), ("paimon", pa.binary(16))])
def test_uuids_of_a_parquet_file_are_written_as_their_bytes(tmp_path, form, kind):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format=form)
    catalog.create_database("shop")
    table = catalog.create_table("shop.ids", pa.schema([("id", kind)]))
    stored = pa.array([bytes(16), None], pa.uuid())
    pq.write_table(pa.table({"id": stored}), tmp_path / "ids.parquet")
    show("write", table.location, str(tmp_path / "ids.parquet"))
    assert table.scan().to_arrow()["id"].to_pylist() == [bytes(16), None]

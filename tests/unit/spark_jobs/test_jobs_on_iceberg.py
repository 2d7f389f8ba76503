"""Jobs on a table of an Iceberg catalog: they work, or are refused by name with advice."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from spark_jobs.check import FailedChecksError
from spark_jobs.runtime import spark_session
from spark_jobs.runtime.registry import JOB_NAMES, find_job
from tests.golden.iceberg_orders import IcebergOrders
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table

WORKING = {
    "health": {},
    "check": {"min_rows": 2, "not_null": ["id"], "unique": ["id"], "warn_only": []},
}
"""The jobs that work, with the keys of their requests that differ from the example."""


LACKING = [job for job in JOB_NAMES if find_job(job).operation in lake.IcebergTable.instead]
"""The jobs whose operation Iceberg tables lack."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("warehouse")
    make_small_table(root / "shop/orders")
    return root


def request_of(job: str, warehouse: Path, **more: Any) -> dict[str, Any]:
    of_catalog = {"warehouse": str(warehouse), "catalog_options": {"format": "iceberg"}}
    return {**find_job(job).example, **of_catalog, **more}


def run(job: str, request: dict[str, Any]) -> dict[str, Any]:
    return import_module(f"spark_jobs.{job}").run(request)


@pytest.fixture
def orders(tmp_path) -> IcebergOrders:
    """A table of five commits."""
    return IcebergOrders(tmp_path)


@pytest.mark.parametrize("job", LACKING)
def test_a_job_that_the_format_lacks_is_refused_by_name(job, warehouse):
    with pytest.raises(lake.InvalidRequestError) as refused:
        run(job, request_of(job, warehouse))
    operation = find_job(job).operation
    table = lake.open_catalog(str(warehouse), format="iceberg").table("shop.orders")
    message = str(refused.value)
    assert f"is an Iceberg table, which has no operation {operation!r}: " in message
    assert message.endswith(table.instead[operation])
    assert "\n" not in message


@pytest.mark.parametrize("job", sorted({*LACKING} - {"compact_database"}))
def test_it_is_refused_before_spark_is_started(job, warehouse, monkeypatch):
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(spark_session, "start_session", start)
    request = {**request_of(job, warehouse), "engine": "spark"}
    if "dry_run" in request:
        request["dry_run"] = False
    with pytest.raises(lake.UnsupportedError, match="which has no operation"):
        run(job, request)


@pytest.mark.parametrize("job", WORKING)
def test_a_job_that_the_format_has_works(job, warehouse):
    result = run(job, request_of(job, warehouse, **WORKING[job]))
    assert (result["job"], result["table"], result["snapshot_id"]) == (job, "shop.orders", None)
    assert result["previous_snapshot_id"] == 7
    assert result["report"]["snapshot_id"] == 7


def test_the_analyze_job_counts_a_snapshot_once(orders, tmp_path):
    request = request_of("analyze", tmp_path)
    first, again = run("analyze", request), run("analyze", request)
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["snapshot_id"] is None
    assert first["report"]["analyzed_snapshot_id"] == orders.snapshots[-1]
    assert again["report"]["columns"] == first["report"]["columns"] != {}


def test_the_health_job_gives_the_reasons(warehouse):
    result = run("health", request_of("health", warehouse))
    assert result["reason"] == "healthy, score 100: no problems found"
    assert result["report"]["files"]["files"] == 1


def test_the_check_job_fails_with_examples(warehouse):
    request = request_of("check", warehouse, **{**WORKING["check"], "conditions": ["id > 1"]})
    with pytest.raises(FailedChecksError, match=r"1 of 2 rows does not meet .*, such as id=1"):
        run("check", request)


def test_staged_rows_are_checked_and_published_by_the_commit_job_once(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    (tmp_path / "rows.csv").write_text("id\n2\n3\n")
    source, pair = str(tmp_path / "rows.csv"), {"commit_user": "run", "commit_identifier": 1}
    ingest = request_of("ingest", tmp_path, source=source, stage=True, create=False, **pair)
    first, again = run("ingest", ingest), run("ingest", ingest)
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert (first["staged"], first["report"]["rows"]) == (again["staged"], 2)
    assert (first["replayed"], again["replayed"], ids_of(table)) == (False, True, [1, 2])

    staged = [first["staged"]]
    with pytest.raises(FailedChecksError, match=r"unique\(id\): .* id=2"):
        run("check", request_of("check", tmp_path, staged=staged, warn_only=None))
    checked = run("check", request_of("check", tmp_path, staged=staged))
    assert checked["staged"] == staged

    publish = request_of("commit", tmp_path, staged=staged)
    done, repeated = run("commit", publish), run("commit", publish)
    assert (done["report"]["kind"], done["snapshot_id"]) == ("append", table.latest_snapshot().id)
    assert (repeated["replayed"], repeated["snapshot_id"]) == (True, done["snapshot_id"])
    assert ids_of(table) == [1, 2, 2, 3]


def table_with_old_staged_rows(tmp_path: Path) -> lake.IcebergTable:
    make_small_table(tmp_path / "shop/orders")
    (tmp_path / "rows.csv").write_text("id\n3\n")
    source = str(tmp_path / "rows.csv")
    run("ingest", request_of("ingest", tmp_path, source=source, stage=True, create=False))
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    for path in (tmp_path / "shop/orders/_lake").rglob("staged-*"):
        note = path.read_text()
        created = str(table.staged.list()[0].created_millis)
        path.write_text(note.replace(created, str(int(created) - 8 * 24 * 3600 * 1000)))
    return table


def test_old_staged_rows_are_discarded_with_the_orphans(tmp_path):
    table = table_with_old_staged_rows(tmp_path)
    request = {"staged_older_than": "7 d", "dry_run": False}
    result = run("remove_orphans", request_of("remove_orphans", tmp_path, **request))
    staged = result["report"]["staged"]
    assert [(each["outcome"], each["dry_run"]) for each in staged] == [("discarded", False)]
    assert table.staged.list() == []


def test_a_refused_removal_of_orphans_keeps_old_staged_rows(tmp_path):
    table = table_with_old_staged_rows(tmp_path)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.alter_table("shop.orders", lake.set_option("gc.enabled", "false"))
    [staged] = table.staged.list()
    request = {"staged_older_than": "7 d", "dry_run": False}
    with pytest.raises(lake.UnsupportedError, match=r"gc\.enabled.* nothing was deleted"):
        run("remove_orphans", request_of("remove_orphans", tmp_path, **request))
    assert table.staged.publish([table.staged.address(staged.name)]).rows == 1


def test_staged_rows_that_cannot_be_discarded_keep_the_orphans(tmp_path):
    table_with_old_staged_rows(tmp_path)
    orphan = tmp_path / "shop/orders/data/left.parquet"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"orphan")
    os.utime(orphan, (0, 0))
    [path] = (tmp_path / "shop/orders/_lake").rglob("staged-*")
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    request = {"staged_older_than": "7 d", "dry_run": False, "max_share": 1}
    with pytest.raises(lake.InvalidRequestError, match=r"not a staged result of this version"):
        run("remove_orphans", request_of("remove_orphans", tmp_path, **request))
    assert orphan.exists()


@pytest.mark.parametrize("type_text", ["STRING", "STRING NOT NULL"])
def test_a_column_that_a_csv_file_lacks_gets_its_write_default(tmp_path, type_text):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "INT"), ("note", "STRING"), ("state", type_text)]
    catalog.create_table("shop.orders", columns, format_version=3)
    (path,) = (tmp_path / "shop/orders/metadata").glob("*.json")
    metadata = json.loads(path.read_text())
    metadata["schemas"][0]["fields"][2]["write-default"] = "new"
    path.write_text(json.dumps(metadata))
    (tmp_path / "in.csv").write_text("id,note\n1,a\n")
    run("ingest", request_of("ingest", tmp_path, source=str(tmp_path / "in.csv"), create=False))
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "note": "a", "state": "new"}]


def test_a_csv_file_without_a_required_column_is_named(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "INT"), ("state", "STRING NOT NULL")])
    for name, content in {"a": "id,state\n1,new\n2,new\n", "b": "id\n3\n"}.items():
        (tmp_path / f"{name}.csv").write_text(content)
    request = request_of("ingest", tmp_path / "lake", source=str(tmp_path / "*.csv"), create=False)
    told = r"b\.csv: column 'state' is required, but .* is row 1 \(rows count from 1\)$"
    with pytest.raises(lake.InvalidRequestError, match=told):
        run("ingest", request)
    assert catalog.table("shop.orders").scan().to_arrow().num_rows == 0


def test_an_ingestion_that_the_format_lacks_is_refused_by_name(warehouse):
    request = request_of("ingest", warehouse) | {"source_table": "shop.old", "create": False}
    request |= {"consumer": "copy"}
    advice = "is an Iceberg table, .* not take 'source_table': in a Python function, read"
    with pytest.raises(lake.UnsupportedError, match=advice):
        run("ingest", {key: value for key, value in request.items() if key != "source"})


@pytest.mark.parametrize("engine", ["csv", "parquet"])
def test_files_with_new_and_wider_columns_change_the_table(tmp_path, engine):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "INT"), ("note", "STRING")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "note": ["a"]}))
    rows = pa.table({"id": pa.array([1 << 40]), "price": pa.array([2.5])})
    source = tmp_path / f"rows.{engine}"
    if engine == "csv":
        source.write_text(f"id,price\n{1 << 40},2.5\n")
    else:
        pq.write_table(rows, source)
    request = request_of("ingest", tmp_path) | {"source": str(source)}
    with pytest.raises(lake.InvalidRequestError, match="With on_schema_change="):
        run("ingest", request)
    planned = run("ingest", request | {"on_schema_change": "widen", "dry_run": True})
    for change in ("change column id to BIGINT", "add column price DOUBLE"):
        assert change in planned["reason"]
    run("ingest", request | {"on_schema_change": "widen"})
    found = sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())
    assert found == [(1, "a", None), (1 << 40, None, 2.5)]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_the_ingest_job_appends_once(tmp_path, ending):
    make_small_table(tmp_path / "shop/orders")
    source = tmp_path / f"rows.{ending}"
    rows = pa.table({"id": [3, 4]})
    if ending == "csv":
        source.write_text("id\n3\n4\n")
    elif ending == "json":
        source.write_text('{"id": 3}\n{"id": 4}\n')
    else:
        pq.write_table(rows, source)
    commit = {"commit_user": "dag-run", "commit_identifier": 1}
    request = {**request_of("ingest", tmp_path), **commit, "source": str(source)}

    first, again = run("ingest", request), run("ingest", request)

    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert ids_of(table) == [1, 2, 3, 4]
    assert first["snapshot_id"] == table.latest_snapshot().id
    assert (first["previous_snapshot_id"], first["replayed"]) == (7, False)
    assert (again["snapshot_id"], again["replayed"]) == (first["snapshot_id"], True)
    assert again["previous_snapshot_id"] == 7


def test_the_ingest_job_replaces_the_rows_of_a_table(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    (tmp_path / "rows.csv").write_text("id\n3\n4\n")
    request = {**request_of("ingest", tmp_path), "source": str(tmp_path / "rows.csv")}
    result = run("ingest", {**request, "overwrite": "table"})
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert ids_of(table) == [3, 4]
    assert result["report"]["deleted_files"] == 1


def test_the_ingest_job_replaces_rows_by_their_keys_once(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    (tmp_path / "rows.csv").write_text("id\n2\n3\n")
    commit = {"commit_user": "dag-run", "commit_identifier": 1}
    request = {**request_of("ingest", tmp_path), **commit, "upsert_by": ["id"]}
    request["source"] = str(tmp_path / "rows.csv")
    planned = run("ingest", {**request, "dry_run": True})
    assert "1 file would replace rows with the same keys in shop.orders" in planned["reason"]
    first, again = run("ingest", request), run("ingest", request)
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert ids_of(table) == [1, 2, 3]
    assert (first["report"]["replaced_rows"], again["replayed"]) == (1, True)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"overwrite": "table"}, "'upsert_by' and 'overwrite' exclude each other"),
        ({"stage": True}, "'upsert_by' and 'stage' exclude each other"),
    ],
)
def test_keys_are_refused_where_rows_cannot_be_replaced_by_them(tmp_path, more, error):
    request = {**request_of("ingest", tmp_path), "source": "rows.csv", "upsert_by": ["id"]}
    with pytest.raises(lake.LakeError, match=error):
        run("ingest", request | more)


@pytest.fixture
def new_table(tmp_path) -> dict[str, Any]:
    """A request whose table does not exist yet."""
    (tmp_path / "rows.csv").write_text("id,at\n1,2024-01-31 10:00:00\n2,2024-02-01 11:00:00\n")
    return request_of("ingest", tmp_path / "new") | {
        "source": str(tmp_path / "rows.csv"),
        "primary_key": ["id"],
        "partition_by": ["days(at)", "bucket(4, id)"],
        "table_options": {"format-version": "3", "write.parquet.compression-level": "1"},
    }


def test_the_ingest_job_creates_a_table_by_the_columns_of_the_source(new_table):
    planned = run("ingest", {**new_table, "dry_run": True})
    first, again = run("ingest", new_table), run("ingest", new_table)
    table = lake.open_catalog(new_table["warehouse"], format="iceberg").table("shop.orders")
    assert planned["report"]["new_columns"] == ["id BIGINT", "at TIMESTAMP(0)"]
    assert (table.partition_by, table.format_version) == (["day(at)", "bucket[4](id)"], 3)
    assert table.schema.identifier_field_ids == (1,)
    assert ids_of(table) == [1, 1, 2, 2]
    assert [first["previous_snapshot_id"], again["previous_snapshot_id"]] == [
        None,
        first["snapshot_id"],
    ]


@pytest.mark.parametrize(
    ("asked", "difference"),
    [
        ({"primary_key": ["at"]}, "primary_key is ['id'] in the table and ['at'] in the request"),
        ({"partition_by": ["at"]}, "and ['at'] in the request"),
        ({"table_options": {"a": "b"}}, "option 'a' is not set in the table and 'b' in"),
        ({"table_options": {"format-version": "2"}}, "is '3' in the table and '2' in the request"),
    ],
)
def test_a_table_that_differs_from_the_one_to_create_is_refused(new_table, asked, difference):
    run("ingest", new_table)
    with pytest.raises(lake.InvalidRequestError, match="contradicts the request") as refused:
        run("ingest", {**new_table, **asked})
    assert difference in str(refused.value)


def test_a_new_table_that_got_no_rows_is_dropped_but_no_file_of_another_program(new_table):
    source, root = Path(new_table["source"]), Path(new_table["warehouse"], "shop/orders")
    source.write_text("id,at\n1,2024-01-31 10:00:00\n,2024-01-31 10:00:00\n")
    with pytest.raises(lake.InvalidRequestError, match="column 'id' is required"):
        run("ingest", new_table)
    assert not root.exists()
    (root / "old").mkdir(parents=True)
    (root / "old/rows.csv").write_text("id\n1\n")
    with pytest.raises(lake.InvalidRequestError, match="column 'id' is required"):
        run("ingest", new_table)
    assert (root / "old/rows.csv").exists()


def test_with_a_checkpoint_each_file_is_ingested_once(new_table, tmp_path):
    request = {**new_table, "checkpoint": str(tmp_path / "checkpoint"), "files_per_batch": 1}
    request["source"] = str(tmp_path / "*.csv")
    first = run("ingest", request)
    for name in "ba":
        (tmp_path / f"{name}.csv").write_text(f"id,at\n{ord(name)},2024-01-31 10:00:00\n")
    second, third = run("ingest", request), run("ingest", request)
    table = lake.open_catalog(new_table["warehouse"], format="iceberg").table("shop.orders")
    snapshots = [each.id for each in table.snapshots()]
    assert ids_of(table) == [1, 2, 97, 98]
    assert first["snapshot_id"] == second["previous_snapshot_id"] == snapshots[0]
    assert second["snapshot_id"] == snapshots[2]
    assert (second["report"]["batches"], third["skipped"]) == (2, True)


def test_a_run_that_is_done_again_replaces_its_rows(new_table):
    run_of = {**new_table, "commit_user": "dag-run", "commit_identifier": 1}
    first = run("ingest", run_of)
    Path(new_table["source"]).write_text("id,at\n3,2024-01-31 10:00:00\n")
    again = {**run_of, "commit_identifier": 2, "commit_replaces": first["snapshot_id"]}
    assert run("ingest", again)["report"]["deleted_files"] == 2
    table = lake.open_catalog(new_table["warehouse"], format="iceberg").table("shop.orders")
    assert ids_of(table) == [3]


def test_a_row_that_does_not_fit_is_named_and_nothing_is_published(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    (tmp_path / "rows.csv").write_text("id\n3\nx\n")
    request = {**request_of("ingest", tmp_path), "source": str(tmp_path / "rows.csv")}
    with pytest.raises(lake.InvalidRequestError, match=r"rows\.csv.*'x'"):
        run("ingest", request)
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    assert ids_of(table) == [1, 2]


def test_the_tag_job_keeps_a_snapshot(orders, tmp_path):
    second = orders.snapshots[1]
    request = request_of("tag", tmp_path, action="create", tag="v1", snapshot=second)
    first, again = run("tag", request), run("tag", {**request, "exist_ok": True})
    assert (first["report"]["action"], first["report"]["snapshot_id"]) == ("created", second)
    assert (first["skipped"], again["skipped"]) == (False, True)
    deleted = run("tag", request_of("tag", tmp_path, action="delete", exist_ok=False, tag="v1"))
    assert deleted["report"]["deleted"] == ["v1"]


def test_a_tag_may_have_every_name_that_the_format_allows(orders, tmp_path):
    long = "x" * 300
    for action, more in {
        "create": {"tag": "release/1", "exist_ok": True},
        "replace": {"tag": "release/1", "from_tag": "release/1"},
        "rename": {"tag": "release/1", "new_name": long},
    }.items():
        run("tag", request_of("tag", tmp_path, **{"exist_ok": False, "action": action, **more}))
    tags = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders").tags
    assert [tag.name for tag in tags.list()] == [long]
    back = run("rollback", request_of("rollback", tmp_path, snapshot=None, tag=long))
    assert back["report"]["snapshot_id"] == orders.snapshots[-1]


def test_the_rollback_job_returns_to_a_snapshot(orders, tmp_path):
    second, last = orders.snapshots[1], orders.snapshots[-1]
    result = run(
        "rollback", request_of("rollback", tmp_path, tag=None, snapshot=second, dry_run=False)
    )
    assert (result["previous_snapshot_id"], result["snapshot_id"]) == (last, second)
    again = run(
        "rollback", request_of("rollback", tmp_path, tag=None, snapshot=second, dry_run=False)
    )
    assert (again["skipped"], again["snapshot_id"]) == (True, None)


def test_the_expiry_job_removes_old_snapshots(orders, tmp_path):
    request = {**request_of("expire_snapshots", tmp_path), "retain_max": None, "limit": None}
    planned = run("expire_snapshots", {**request, "older_than": "1 ms", "dry_run": True})
    done = run("expire_snapshots", {**request, "older_than": "1 ms", "dry_run": False})
    again = run("expire_snapshots", {**request, "older_than": "1 ms", "dry_run": False})
    assert planned["report"]["snapshots"] == done["report"]["snapshots"] == orders.snapshots[:-1]
    assert (done["skipped"], again["skipped"]) == (False, True)
    assert done["previous_snapshot_id"] == orders.snapshots[-1]
    assert done["reason"].startswith("4 snapshots expired; ")


def test_the_compact_job_merges_files_once(orders, tmp_path):
    request = {**request_of("compact", tmp_path, where=None, partitions=None), "dry_run": False}
    planned = run("compact", {**request, "dry_run": True})
    done = run("compact", request)
    again = run("compact", request)
    assert planned["report"]["groups"]
    assert done["report"]["files_in"] > done["report"]["files_out"]
    assert (done["skipped"], again["skipped"]) == (False, True)
    assert done["previous_snapshot_id"] == orders.snapshots[-1]


def test_the_compact_job_sorts_all_files_or_those_that_are_due(orders, tmp_path):
    request = request_of("compact", tmp_path, where=None, partitions=None, dry_run=False)
    by_id = run("compact", {**request, "order_by": ["id desc"]})
    assert by_id["report"]["strategy"] == "sort"
    scan = lake.open_table(str(orders.root)).scan(["id"])
    for split in scan.splits():
        ids = [row["id"] for batch in scan.read(split) for row in batch.to_pylist()]
        assert ids == sorted(ids, reverse=True)
    due = run("compact", {**request, "strategy": "zorder", "order_by": ["id"]})
    assert due["skipped"]


def test_the_compact_job_publishes_groups_as_they_are_done(orders, tmp_path):
    request = request_of("compact", tmp_path, where=None, partitions=None, dry_run=False)
    report = run("compact", {**request, "order_by": ["id"], "max_commits": 10})["report"]
    assert len(report["snapshot_ids"]) == len(report["groups"]) > 1


def test_the_job_names_a_choice_without_files(orders, tmp_path):
    request = request_of("compact", tmp_path, where="p = 'none'", partitions=None, dry_run=False)
    result = run("compact", request)
    assert result["skipped"]
    assert "can match where=\"p = 'none'\"" in result["report"]["warning"]


def test_the_tables_of_a_database_are_compacted(orders, tmp_path):
    request = request_of("compact_database", tmp_path, where=None, dry_run=False)
    request |= {"database": "shop", "including": ".*", "excluding": None}
    result = run("compact_database", request)
    [only] = result["report"]["tables"]
    assert (only["table"], only["error"]) == ("shop.orders", None)
    assert only["report"]["files_in"] > only["report"]["files_out"]


def test_the_removal_of_orphans_deletes_old_files_that_nothing_needs(orders, tmp_path):
    lost = orders.root / "data/lost.parquet"
    lost.write_bytes(b"lost")
    os.utime(lost, (1_600_000_000, 1_600_000_000))
    request = request_of("remove_orphans", tmp_path, older_than="2 d")
    planned = run("remove_orphans", {**request, "dry_run": True})
    done = run("remove_orphans", {**request, "dry_run": False})
    again = run("remove_orphans", {**request, "dry_run": False})
    assert planned["report"]["orphan_files"] == done["report"]["removed_files"] == 1
    assert (done["skipped"], again["skipped"], lost.exists()) == (False, True, False)


def test_the_maintain_job_does_all_steps_once(orders, tmp_path):
    request = request_of("maintain", tmp_path, expire_consumers=None)
    planned = run("maintain", {**request, "dry_run": True})
    done, again = run("maintain", request), run("maintain", request)
    assert planned["reason"].startswith("degraded; would compact 8 files in 2 groups")
    table = lake.open_table(str(orders.root))
    assert done["snapshot_id"] == table.latest_snapshot().id
    assert done["previous_snapshot_id"] == orders.snapshots[-1]
    assert (done["report"]["after"]["verdict"], done["report"]["is_healthy"]) == ("healthy", True)
    assert (done["skipped"], again["skipped"]) == (False, True)


def test_the_tables_of_a_database_are_maintained(orders, tmp_path):
    request = request_of("maintain", tmp_path, table=None, database="shop", expire_consumers=None)
    result = run("maintain", request)
    assert result["reason"] == "1 of 1 tables maintained"
    assert result["report"]["tables"][0]["report"]["files_out"] == 2


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("engine", "spark", "use engine 'python'"),
        ("external_paths", True, "leave out key 'external_paths'"),
    ],
)
def test_a_removal_of_orphans_refuses_what_only_paimon_tables_have(
    key, value, advice, orders, tmp_path
):
    with pytest.raises(lake.UnsupportedError, match=advice):
        run("remove_orphans", request_of("remove_orphans", tmp_path, **{key: value}))


def test_a_retried_compaction_has_the_snapshots_of_the_first_attempt(tmp_path):
    make_small_table(tmp_path / "shop/orders")
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.orders")
    table.write(pa.table({"id": [3]}))
    newest = table.latest_snapshot().id
    commit = {"commit_user": "dag-run", "commit_identifier": 1}
    request = request_of("compact", tmp_path, **commit)

    first = run("compact", request)
    table.write(pa.table({"id": [4]}))
    again = run("compact", request)

    assert (first["replayed"], again["replayed"]) == (False, True)
    assert [first["previous_snapshot_id"], again["previous_snapshot_id"]] == [newest, newest]
    assert again["snapshot_id"] == first["snapshot_id"]


def test_an_ingest_creates_the_nested_database_of_its_table(tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "rows.parquet")
    options = {"format": "iceberg", "metastore": "sql", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    request = {
        "warehouse": str(tmp_path / "warehouse"),
        "catalog_options": options,
        "table": "sales.eu.orders",
        "source": str(tmp_path / "rows.parquet"),
        "create": True,
        "engine": "python",
    }
    assert run("ingest", request)["report"]["rows"] == 2
    catalog = lake.open_catalog(request["warehouse"], options=options)
    assert catalog.list_databases() == ["sales.eu"]
    assert catalog.table("sales.eu.orders").scan().count() == 2


def test_an_ingest_into_a_missing_branch_does_not_advise_to_create_the_table(warehouse, tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "rows.parquet")
    request = request_of("ingest", warehouse, source=str(tmp_path / "rows.parquet"), create=False)
    request |= {"table": "shop.orders$branch_dev", "engine": "python"}
    with pytest.raises(lake.NotFoundError, match="has no branch 'dev'") as refused:
        run("ingest", request)
    assert "create=True" not in str(refused.value)

"""Another number of buckets for existing partitions: the same rows, and no row is lost."""

from __future__ import annotations

import json
from concurrent.futures import wait
from dataclasses import replace
from math import gcd
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.paimon.compact.rescaling import part as rewriting
from lakeformat.paimon.compact.rescaling import rescale as rescaling
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]


@pytest.fixture
def catalog() -> lake.Catalog:
    catalog = lake.open_catalog(f"memory://{uuid4()}/")
    catalog.create_database("shop")
    return catalog


def by_day(catalog: lake.Catalog, *, keyed: bool = True, **options: str) -> lake.Table:
    keys: dict[str, Any] = {"primary_key": ["dt", "id"]} if keyed else {}
    own = {"bucket": "2"} if keyed else {"bucket": "2", "bucket-key": "id"}
    return catalog.create_table(
        "shop.orders", COLUMNS, partition_by=["dt"], options={**own, **options}, **keys
    )


def rows(ids: Any, note: str = "a", dt: str = "mon") -> pa.Table:
    ids = list(ids)
    return pa.table({"dt": [dt] * len(ids), "id": ids, "note": [note] * len(ids)})


def content(table: lake.Table, **when: Any) -> list[tuple[str, int, str]]:
    found = table.scan(**when).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def totals(table: lake.Table) -> dict[str, int]:
    columns = ["partition", "total_buckets"]
    found = table.system_table("partitions").scan(columns).to_arrow().to_pylist()
    return {row["partition"]: row["total_buckets"] for row in found}


@pytest.mark.parametrize("executor", [None, "threads"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_every_partition_gets_the_number_of_the_option(catalog, keyed, executor):
    table = by_day(catalog, keyed=keyed)
    table.write(pa.concat_tables([rows(range(20)), rows(range(5), dt="tue")]))
    table.write(rows(range(30, 40), "b"))
    before = content(table)
    catalog.alter_table("shop.orders", lake.set_option("bucket", "3"))
    table = catalog.table("shop.orders")
    report = table.rescale(executor=executor)
    assert report.snapshot_ids == (3, 4)
    assert totals(table) == {"dt=mon": 3, "dt=tue": 3}
    assert content(table) == before
    assert content(table, snapshot=2) == before, "older snapshots stay readable"
    table.write(rows([100], "c"))
    assert content(table) == sorted([*before, ("mon", 100, "c")], key=repr)
    again = table.rescale()
    assert (again.snapshot_ids, again.reason) == (
        (),
        "nothing to do: every chosen partition has 3 buckets",
    )


def test_a_table_without_rows_has_nothing_to_rescale(catalog):
    report = by_day(catalog).rescale(bucket=3)
    assert report.reason == "nothing to do: the chosen partitions have no data file in a bucket"


def test_a_dry_run_says_what_would_be_done_and_does_nothing(catalog):
    table = by_day(catalog)
    table.write(pa.concat_tables([rows(range(20)), rows(range(5), dt="tue")]))
    report = table.rescale(bucket=4, partitions={"dt": "mon"}, dry_run=True)
    [planned] = report.partitions
    assert (planned.partition, planned.buckets_before, planned.buckets) == ("dt=mon", 2, 4)
    assert (planned.outcome, planned.rows_in, report.snapshot_ids) == ("planned", 20, ())
    assert "alter_table(…, set_option('bucket', " in report.reason
    assert totals(table) == {"dt=mon": 2, "dt=tue": 2}


def test_one_partition_may_have_another_number(catalog):
    table = by_day(catalog)
    table.write(pa.concat_tables([rows(range(20)), rows(range(5), dt="tue")]))
    table.rescale(bucket=4, partitions={"dt": "mon"})
    assert totals(table) == {"dt=mon": 4, "dt=tue": 2}
    table.write(rows([1], "b", dt="tue"))
    told = "has 4 buckets, but option 'bucket' is '2': .*Set the option to '4', rescale the table"
    with pytest.raises(lake.InvalidRequestError, match=told):
        table.write(rows([1], "b"))
    assert len(content(table)) == 25
    table.rescale()
    table.write(rows([1], "b"))
    assert len(content(table)) == 25


def test_a_table_opened_before_a_rescale_says_that_it_is_to_be_opened_again(catalog):
    table = by_day(catalog)
    table.write(rows(range(20)))
    catalog.alter_table("shop.orders", lake.set_option("bucket", "3"))
    catalog.table("shop.orders").rescale()
    told = "has 3 buckets now but had 2 when the table was opened: open the table again"
    with pytest.raises(lake.InvalidRequestError, match=told):
        table.write(rows([1], "b"))


def test_a_writer_with_the_old_number_is_refused(catalog):
    table = by_day(catalog)
    table.write(rows(range(20)))
    late = table.new_writer()
    late.write(rows([50]))
    messages = late.prepare()
    catalog.alter_table("shop.orders", lake.set_option("bucket", "3"))
    catalog.table("shop.orders").rescale()
    with pytest.raises(lake.CommitConflictError, match=r"has 3 and 2 buckets|2 and 3"):
        table.commit(messages)
    table.abort(messages)
    assert len(content(table)) == 20


@pytest.mark.parametrize(("before", "count"), [(4, 6), (2, 8), (6, 3), (3, 2)])
def test_buckets_that_share_no_row_are_written_apart(catalog, monkeypatch, before, count):
    table = by_day(catalog, bucket=str(before))
    table.write(pa.concat_tables([rows(range(60)), rows(range(5), dt="tue")]))
    expected = content(table)
    seen = []
    parts = rescaling._parts
    monkeypatch.setattr(rescaling, "_parts", lambda *a, **k: seen.append(parts(*a, **k)) or seen[0])

    table.rescale(bucket=count, executor="threads")

    assert {each.classes for each in seen[0]} == {gcd(before, count)}
    assert content(table) == expected
    assert totals(table) == {"dt=mon": count, "dt=tue": count}
    catalog.alter_table("shop.orders", lake.set_option("bucket", str(count)))
    table = catalog.table("shop.orders")
    table.write(rows(range(60), "b"))  # a key in another bucket would be there twice
    assert len(content(table)) == 65


def test_rows_that_lie_in_a_wrong_bucket_are_not_spread(catalog, monkeypatch):
    table = by_day(catalog)
    table.write(rows(range(20)))
    before = content(table)
    monkeypatch.setattr(rescaling, "classes_of", lambda *_: 2)  # as if 2 were a divisor of 3

    with pytest.raises(lake.CorruptTableError, match="buckets that do not match their keys"):
        table.rescale(bucket=3, executor="threads")

    assert content(table) == before
    handle = table._handle
    data = [path for path in handle.storage.files(handle.layout.root) if "/data-" in path]
    live = table.system_table("files").scan(["file_path"]).to_arrow().num_rows
    assert len(data) == live
    assert table.rescale(bucket=3).snapshot_ids == (2,)


def test_a_file_that_cannot_be_opened_is_the_error_of_its_part(catalog, monkeypatch):
    table = by_day(catalog)
    table.write(rows(range(20)))
    handle, missing = table._handle, lake.NotFoundError("no such file")

    def refused(*_):
        raise missing

    monkeypatch.setattr(rewriting, "rewriting_instants", refused)
    scan = rewriting.scan_of(handle, read_snapshot(handle.storage, handle.layout, 1))
    splits = tuple(scan.splits())
    part = rewriting.Part(splits[0].partition, splits, 1, 0)

    assert rewriting.Rewriting(handle, scan, 1, 3)(part) == (part, [], missing)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_rows_that_come_in_meanwhile_are_there_afterwards(catalog, monkeypatch, executor):
    table = by_day(catalog)
    table.write(rows(range(20)))
    met = []
    publish = rescaling._published

    def publish_after_a_rival(target, unit, messages):
        if not met:
            met.append(True)
            table.write(rows([99], "late"))
        return publish(target, unit, messages)

    monkeypatch.setattr(rescaling, "_published", publish_after_a_rival)
    report = table.rescale(bucket=6, executor=executor)
    assert report.snapshot_ids == (3,)
    assert ("mon", 99, "late") in content(table)
    assert totals(table) == {"dt=mon": 6}
    handle = table._handle
    data = [path for path in handle.storage.files(handle.layout.root) if "/data-" in path]
    live = table.system_table("files").scan(["file_path"]).to_arrow().num_rows
    assert len(data) == live + 3, "the first try has left no file, the old ones are kept"


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_rows_of_a_snapshot_with_a_reused_number_are_kept(catalog, monkeypatch, executor):
    table = by_day(catalog)
    table.write(rows([1]))
    table.write(rows([2]))
    met = []
    publish = rescaling._published

    def publish_after_a_cut(target, unit, messages):
        if not met:
            met.append(True)
            table.rollback(snapshot=1, as_latest=False)
            table.write(rows([99], "late"))
        return publish(target, unit, messages)

    monkeypatch.setattr(rescaling, "_published", publish_after_a_cut)
    report = table.rescale(bucket=6, executor=executor)
    assert report.snapshot_ids == (3,)
    assert content(table) == [("mon", 1, "a"), ("mon", 99, "late")]


def test_a_table_that_others_write_to_all_the_time_is_given_up(catalog, monkeypatch):
    table = by_day(catalog)
    table.write(rows(range(20)))
    publish = rescaling._published

    def publish_after_a_rival(target, unit, messages):
        table.write(rows([99], "late"))
        return publish(target, unit, messages)

    monkeypatch.setattr(rescaling, "_published", publish_after_a_rival)
    with pytest.raises(lake.CommitConflictError, match="changed the same partitions since"):
        table.rescale(bucket=5)
    assert totals(table) == {"dt=mon": 2}


def test_an_interrupted_rescale_leaves_no_file(catalog, monkeypatch):
    table = by_day(catalog)
    for dt in ("mon", "tue", "wed"):
        table.write(rows(range(9), dt=dt))
    storage, layout = table._handle.storage, table._handle.layout
    before = storage.files(layout.root)

    def interrupted(parts: Any, **_: Any) -> None:
        wait(parts)  # all of them are done, and none is reported yet
        raise KeyboardInterrupt

    monkeypatch.setattr("lakeformat.executor.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.rescale(bucket=3, executor="threads")
    assert storage.files(layout.root) == before


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_what_engines_have_made_of_rows_stays(catalog, engine):
    options = {"merge-engine": engine, "fields.default-aggregate-function": "last_non_null_value"}
    table = by_day(catalog, **(options if engine == "aggregation" else {"merge-engine": engine}))
    for note in "ab":
        table.write(rows(range(10), note))
    before = content(table)
    table.rescale(bucket=7)
    assert content(table) == before


def test_rows_that_are_not_seen_yet_are_not_lost(catalog):
    table = by_day(catalog, **{"merge-engine": "first-row"})
    table.write(rows(range(10)))
    with pytest.raises(lake.InvalidRequestError, match="compact it first"):
        table.rescale(bucket=3)
    table.compact()
    table.rescale(bucket=3)
    assert len(content(table)) == 10


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rows_that_no_changelog_tells_yet_are_told_first(catalog, producer):
    table = by_day(catalog, **{"changelog-producer": producer})
    table.write(rows(range(10)))
    with pytest.raises(lake.InvalidRequestError, match=f"{producer}.* compact it first"):
        table.rescale(bucket=3)
    told = table.compact()
    assert told.changelog_rows == 10
    report = table.rescale(bucket=3)
    assert report.snapshot_ids
    assert catalog.table("shop.orders").compact().changelog_rows == 0, "none is told twice"


def test_a_value_that_is_missing_does_not_become_a_default(catalog):
    table = by_day(catalog)
    table.write(rows(range(3), None))
    number, day, note = table.schema.fields
    with_default = replace(
        table.schema, id=1, fields=(number, day, replace(note, default_value="x"))
    )
    handle = table._handle
    assert create_schema(handle.storage, handle.layout, with_default)
    table = catalog.table("shop.orders")
    table.write(rows([9], None))
    assert ("mon", 9, "x") in content(table)
    table.rescale(bucket=3)
    notes = {row["id"]: row["note"] for row in table.scan().to_arrow().to_pylist()}
    assert notes == {0: None, 1: None, 2: None, 9: "x"}


def test_buckets_of_postponed_tables_change_and_what_waits_goes_on_waiting(catalog):
    table = by_day(catalog, bucket="-2")
    table.write(rows(range(20)))
    table.compact()
    table.write(rows([1], "b"))
    with pytest.raises(lake.InvalidRequestError, match="pass the new number as bucket="):
        table.rescale()
    table.rescale(bucket=4)
    assert totals(table)["dt=mon"] in (4, -2)
    table.compact()
    assert totals(table) == {"dt=mon": 4}
    assert ("mon", 1, "b") in content(table)
    assert len(content(table)) == 20


@pytest.mark.parametrize("bucket", [0, -1, True, "3"])
def test_what_is_no_number_of_buckets_is_refused(catalog, bucket):
    with pytest.raises(lake.InvalidRequestError, match="bucket must be a number"):
        by_day(catalog).rescale(bucket=bucket)


def test_tables_without_a_number_have_none_to_change(catalog):
    with pytest.raises(lake.UnsupportedError, match=r"has dynamic buckets .* cannot be rescaled"):
        by_day(catalog, bucket="-1").rescale(bucket=3)
    events = catalog.create_table("shop.events", [("id", "INT")])
    with pytest.raises(lake.UnsupportedError, match=r"has only one bucket .*: compact it instead"):
        events.rescale(bucket=3)


def test_a_table_that_cannot_be_compacted_is_not_advised_to_be(catalog):
    options = {"row-tracking.enabled": "true"}
    events = catalog.create_table("shop.events", [("id", "INT")], options=options)
    with pytest.raises(lake.UnsupportedError, match=r"cannot be rescaled$"):
        events.rescale(bucket=3)


def test_an_empty_table_has_nothing_to_rescale(catalog):
    assert by_day(catalog).rescale(bucket=3).partitions == ()


def test_the_command_says_what_became_of_each_partition(catalog, tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    by_day(catalog).write(rows(range(20)))
    asked = ["-w", str(tmp_path), "rescale", "shop.orders", "--bucket", "4"]
    planned = CliRunner().invoke(app, [*asked, "--dry-run", "--json"])
    assert json.loads(planned.stdout)[0]["partitions"][0]["outcome"] == "planned"
    shown = CliRunner().invoke(app, [*asked, "--where", "dt = 'mon'"])
    assert shown.exit_code == 0, shown.output
    assert "dt=mon" in shown.stdout
    assert "1 of 1 partitions rescaled to 4 buckets" in shown.stdout
    assert f"`lake -w {tmp_path} set-option shop.orders bucket='4'`" in shown.stdout
    assert totals(catalog.table("shop.orders")) == {"dt=mon": 4}

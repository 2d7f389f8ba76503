"""Changes of Mixed tables: in order, with kinds, without gap or overlap, kept for readers."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import publish_change
from tests.golden.mixed import mixed_table
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable
from tests.unit.mixed.edited_stores import edit, newest_metadata

DAY = 24 * HOUR


@pytest.fixture
def aged(tmp_path: Path) -> AgedTable:
    return AgedTable(tmp_path)


def listed(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in rows.to_arrow().to_pylist()]


def apply(state: dict[tuple[Any, ...], Any], changes: Iterable[tuple[Any, ...]]) -> None:
    """Apply changes of the table ``AgedTable`` by key, as a reader does."""
    for kind, key, part, value in changes:
        if kind[0] == "+":
            state[key, part] = value
        else:
            state.pop((key, part), None)


def as_rows(state: dict[tuple[Any, ...], Any]) -> list[tuple[Any, ...]]:
    return sorted((*key, value) for key, value in state.items())


def test_a_condition_on_changes_does_not_find_rows_with_null(aged):
    begin = aged.table.position()
    rows = [(1, "x", "a"), (2, "x", None), (3, "x", "b")]
    aged.table.write(pa.table([*zip(*rows, strict=True)], schema=COLUMNS))
    found = aged.table.changes(begin, where="v <> 'a'")
    assert listed(found) == [("+U", 3, "x", "b")]


def test_changes_have_their_kinds_and_their_order(aged):
    aged.write((1, "x", "a"))
    begin = aged.table.position()
    kinds = ["-U", "+U", "+I", "-D", "+I"]
    rows = [(1, "x", "a"), (1, "x", "b"), (2, "x", "c"), (2, "x", "c"), (2, "x", "d")]
    data = pa.table([*zip(*rows, strict=True)], schema=COLUMNS)
    aged.table.write(data, kinds=kinds)
    assert listed(aged.table.changes(begin)) == [
        ("-U", 1, "x", "a"),
        ("+U", 1, "x", "b"),
        ("+U", 2, "x", "c"),
        ("-D", 2, "x", "c"),
        ("+U", 2, "x", "d"),
    ]
    assert listed(aged.table.changes(begin, columns=["v"], where="rowkind = '-D' or v = 'b'")) == [
        ("+U", "b"),
        ("-D", "c"),
    ]
    assert listed(aged.table.changes(aged.table.position())) == []
    with pytest.raises(lake.UnsupportedError, match="read commit by commit: pass mode='changelog'"):
        aged.table.changes(begin, mode="diff")
    with pytest.raises(
        lake.InvalidRequestError, match=r"keys must be a list of all key columns .* leave out keys"
    ):
        aged.table.changes(begin, keys=["v"])


def test_old_values_of_columns_that_are_never_null_are_delivered(tmp_path):
    """The delete of an upsert has the values of the new row in these columns."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = [("id", "INT"), ("v", "DOUBLE NOT NULL"), ("r", "ROW<a INT> NOT NULL")]
    table = catalog.create_table("db.t", columns, format="mixed", primary_key=["id"])
    begin = table.position()
    values, nested = [1.0, 2.0, float("nan"), 3.0], {"a": 1}
    rows = [{"id": 1, "v": value, "r": nested} for value in values]
    table.write(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema()))
    table.update("id = 1", {"v": 4.0})
    old_and_new = pa.Table.from_pylist(
        [rows[3] | {"v": 4.0}, rows[2], rows[2], rows[2]], schema=table.schema.arrow_schema()
    )
    table.write(old_and_new, kinds=["-U", "+U", "-U", "+U"])
    assert [row[:3] for row in listed(table.changes(begin, where="v < 5"))] == [
        ("+U", 1, 1.0),
        ("+U", 1, 2.0),
        ("+U", 1, 3.0),
        ("-U", 1, 3.0),
        ("+U", 1, 4.0),
        ("-U", 1, 4.0),
    ]


def test_a_window_that_ends_before_it_starts_is_refused(aged):
    table, begin = aged.table, aged.table.position()
    aged.write((1, "x", "a"))
    written, write_time = table.position(), datetime.fromtimestamp(aged.now / 1000 - 1, UTC)
    aged.merge()
    merged, merge_time = table.position(), datetime.fromtimestamp(aged.now / 1000 - 1, UTC)
    swapped = [(written, begin), (merged, written), (merged, 0), (merge_time, write_time)]
    for after, upto in swapped:
        with pytest.raises(lake.InvalidRequestError, match=r"ends before it starts: .*Swap the"):
            table.changes(after, upto)
    assert listed(table.changes(merged, merged)) == listed(table.changes(merged)) == []
    assert listed(table.changes(begin, write_time)) == listed(table.changes(0, written)) != []


def test_an_optimizing_and_an_expiry_have_no_changes(aged):
    aged.write((1, "x", "a"))
    begin = aged.table.position()
    aged.merge()
    aged.now += 8 * DAY
    aged.write((2, "x", "b"))
    assert aged.table.expire_snapshots(older_than="30 d").merged_files == 2
    assert [each[0] for each in listed(aged.table.changes(begin))] == ["+U"]
    aged.begin()
    stream = aged.table.stream("from-timestamp", as_of="2020-01-01")
    assert [listed(each)[0][1] for each in stream] == [1, 2]


def test_a_stream_has_all_rows_and_then_all_changes_once(aged):
    """Random work beside a reader, which restarts at random."""
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    mode, state = draw.choice(["latest-full", "compacted-full"]), dict[tuple[Any, ...], Any]()
    for number in range(12):
        act = draw.choice(["write", "write", "merge", "read", "read", "expire"])
        if act == "write":
            row = (draw.randrange(4), draw.choice("xy"), str(number))
            aged.write(row, kind=draw.choice(["+U", "+U", "-D"]))
        elif act == "merge":
            aged.merge()
        elif act == "expire":
            aged.table.expire_snapshots(older_than="1 s")
        else:
            read(aged, mode, state, draw)
        aged.now += draw.choice([HOUR, 4 * DAY])
    read(aged, mode, state, None)
    assert as_rows(state) == aged.rows()


def read(
    aged: AgedTable, mode: str, state: dict[tuple[Any, ...], Any], draw: random.Random | None
) -> None:
    stream = aged.table.stream(mode, consumer="mirror")
    for each in stream:
        found = listed(each)
        if draw is not None and draw.random() < 0.3:
            return  # dies before it acknowledges
        if each.is_full:
            assert not state
            assert {kind for kind, *_ in found} <= {"+I"}
        apply(state, found)
        stream.acknowledge()


def test_a_consumer_keeps_snapshots_and_is_listed_with_its_progress(aged):
    aged.write((1, "x", "a"))
    stream = aged.table.stream(consumer="mirror")
    [full] = [*stream]
    stream.acknowledge()
    assert full.is_full
    files = [*(aged.root / "db/t/_lake").rglob("consumer-mirror")]
    assert len(files) == 1
    os.utime(files[0], (aged.now // 1000, aged.now // 1000))
    for value in "bcd":
        aged.write((1, "x", value))
        aged.merge()
    aged.now += 30 * DAY
    report = aged.table.expire_snapshots()
    assert (report.held, report.snapshots) == (5, ())
    [consumer] = aged.table.consumers.list()
    assert (consumer.id, consumer.next_snapshot, consumer.behind) == ("mirror", 2, 7)
    assert [listed(each)[0][3] for each in aged.table.stream(consumer="mirror")] == ["b", "c", "d"]
    [obstacle] = aged.table.maintain().obstacles
    assert obstacle.finding.startswith("consumer 'mirror' has not moved for 30 d")
    aged.table.maintain(expire_consumers="7 d")
    assert aged.table.consumers.list() == []


def test_changes_that_expired_under_a_reader_are_named(aged):
    aged.write((1, "x", "a"))
    begin = aged.table.position()
    for value in "bc":
        aged.write((1, "x", value))
        aged.now += DAY
    aged.table.expire_snapshots(older_than="1 s")
    message = r"that follow position main/1\.0.* have expired.*'change.data.ttl.minutes'"
    with pytest.raises(lake.NotFoundError, match=message):
        aged.table.changes(begin)
    with pytest.raises(
        lake.InvalidRequestError, match=r"snapshots after it have expired\. Read all"
    ):
        aged.table.consumers.set("late", after=begin)
    aged.table.consumers.move("late", begin)
    message = r"First call table.consumers.reset\('late'\).*'snapshot.keep.duration'$"
    with pytest.raises(lake.NotFoundError, match=message):
        next(aged.table.stream(consumer="late"))
    assert [each.is_stale for each in aged.table.consumers.list()] == [True]


def test_a_reader_of_a_snapshot_that_was_rolled_back_reads_all_rows_again(aged):
    """Later commits have higher numbers, so only the ids show it."""
    aged.write((1, "x", "a"))
    aged.write((2, "x", "lost"))
    for each in (stream := aged.table.stream(consumer="mirror")):
        assert len(listed(each)) == 2
        stream.acknowledge()
    path = newest_metadata(aged.root / "db/t_change_")
    first = json.loads(path.read_text())["snapshots"][0]["snapshot-id"]
    branch = {"main": {"snapshot-id": first, "type": "branch"}}
    edit(path.parent.parent, refs=branch, **{"current-snapshot-id": first})
    aged.write((3, "x", "b"))
    message = r"history that a rollback removed. First call table.consumers.reset\('mirror'\)"
    with pytest.raises(lake.NotFoundError, match=f"{message}.*starts with a full read$"):
        next(aged.table.stream(consumer="mirror"))


def test_an_overwrite_of_the_base_store_is_refused_with_the_position_after_it(aged):
    aged.write((1, "x", "a"))
    begin = aged.table.position()
    publish_change(aged.table._pair.base, ChangedFiles(is_recorded=True), commit=None)
    aged.now += HOUR
    aged.write((2, "x", "b"))
    with pytest.raises(lake.UnsupportedError, match="is an overwrite or an adoption") as refused:
        aged.table.changes(begin)
    place = str(refused.value).split("scan(snapshot=table.position('")[1].partition("'")[0]
    assert listed(aged.table.changes(aged.table.position(place))) == [("+U", 2, "x", "b")]


@pytest.mark.parametrize(
    "name", ["keyed_int", "keyed_day_minor", "minor_major_full", "t1_t6_merge"]
)
def test_the_changes_of_golden_tables_lead_to_amoros_rows(name):
    """Applied by key in the order of delivery, also if a batch with a low transaction is late."""
    golden = mixed_table(name)
    table = lake.open_table(golden.location)
    key = table.primary_key
    state: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.changes(0).to_arrow().to_pylist():
        kind = row.pop("rowkind")
        place = tuple(row[each] for each in key)
        if kind[0] == "+":
            state[place] = row
        else:
            state.pop(place, None)
    merged = {tuple(r[each] for each in key): r for r in table.scan().to_arrow().to_pylist()}
    assert state == merged


def test_commands_show_changes_and_consumers(tmp_path):
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    position = str(aged.table.position())
    aged.write((1, "x", "b"))
    options = ["--format", "iceberg", "--warehouse", str(tmp_path)]

    def run(*words: str) -> str:
        shown = CliRunner().invoke(app, [*options, *words], env={"COLUMNS": "200"})
        assert shown.exit_code == 0, (shown.output, shown.exception)
        return shown.output

    assert "+U" in run("changes", "db.t", "--after", position)
    run("consumer", "set", "db.t", "mirror", "--next", "2")
    assert "mirror" in run("consumer", "list", "db.t")

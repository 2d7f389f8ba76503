"""Positions and times of a Mixed table give a state that was current, or are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.mixed import mixed_copy, mixed_table
from tests.unit.mixed.edited_stores import edit, newest_metadata


def rows(table: lake.MixedTable, **state: object) -> list[str]:
    return sorted(map(str, table.scan(**state).to_arrow().to_pylist()))


def keep_the_newest_snapshot(store: Path) -> None:
    metadata = json.loads(newest_metadata(store).read_text())
    kept = [each for each in metadata["snapshots"] if each["snapshot-id"] == current(metadata)]
    log = [each for each in metadata["snapshot-log"] if each["snapshot-id"] == current(metadata)]
    edit(store, snapshots=kept, **{"snapshot-log": log})


def current(metadata: dict[str, object]) -> object:
    return metadata["current-snapshot-id"]


@pytest.mark.parametrize(
    ("name", "store", "refused"),
    [
        ("t1_t6_overwrite", "change", 6),
        ("keyed_day_minor", "change", 4),
        ("late_low_tx", "base", 5),
    ],
)
def test_a_state_of_which_one_store_has_expired_is_refused(tmp_path, name, store, refused):
    golden = mixed_copy(name, tmp_path)
    table = lake.open_table(golden.location)
    states = {each.time_millis: rows(table, snapshot=each.position) for each in table.snapshots()}
    keep_the_newest_snapshot(golden.root / golden.expected["stores"][store])
    table = lake.open_table(golden.location)
    found = 0
    for time, wanted in states.items():
        try:
            assert rows(table, as_of=time) == wanted
        except lake.NotFoundError:
            found += 1
    assert found == refused
    for each in table.snapshots():
        if each.is_readable:
            assert rows(table, snapshot=each.position) == states[each.time_millis]
        else:
            with pytest.raises(lake.NotFoundError, match="The oldest position with both snapshots"):
                table.scan(snapshot=each.position)
            with pytest.raises(lake.NotFoundError, match=f"snapshot of its {store} store at"):
                table.scan(snapshot=each.snapshot_id)
    readable = [each.position for each in table.snapshots() if each.is_readable]
    assert table.positions(limit=100) == readable


def test_the_first_snapshot_of_a_transaction_with_two_is_no_state():
    """Amoro publishes the rows and the deletes of a minor optimizing in two snapshots at once."""
    golden = mixed_table("minor_major_full")
    table = lake.open_table(golden.location)
    metadata = json.loads(newest_metadata(golden.root / "t").read_text())
    logged = {each["snapshot-id"] for each in metadata["snapshot-log"]}
    hidden = [each for each in metadata["snapshots"] if each["snapshot-id"] not in logged]
    assert [each["sequence-number"] for each in hidden] == [2, 4, 7]
    assert not {each["snapshot-id"] for each in hidden} & {each.id for each in table.snapshots()}
    for each in table.snapshots():
        found = table.scan(table.primary_key, snapshot=each.position).to_arrow().to_pylist()
        assert len({tuple(row.values()) for row in found}) == len(found), each.position
    for each in hidden:
        with pytest.raises(lake.NotFoundError, match="was never the current snapshot"):
            table.scan(snapshot=each["snapshot-id"])
    assert table.advance("main/2.1", 1).numbers == (2, 3)
    assert [each.position.numbers for each in table.since("main/2.2").snapshots][:1] == [(2, 3)]


def test_a_base_commit_with_an_earlier_time_than_a_change_that_was_read_is_not_left_out(tmp_path):
    golden = mixed_copy("minor_major_full", tmp_path)
    base, change = golden.root / "t", golden.root / "t_change_"
    metadata = json.loads(newest_metadata(base).read_text())
    *earlier, last = sorted(metadata["snapshots"], key=lambda each: each["sequence-number"])
    before = earlier[-1]["snapshot-id"]
    members = ("snapshots", "refs", "current-snapshot-id", "snapshot-log")
    main = {"main": {"snapshot-id": before, "type": "branch"}}
    log = metadata["snapshot-log"][:-1]
    edit(base, **dict(zip(members, (earlier, main, before, log), strict=True)))
    table = lake.open_table(golden.location)
    stored, wanted = str(table.position()), rows(table)
    changed = json.loads(newest_metadata(change).read_text())
    late = max(each["timestamp-ms"] for each in changed["snapshots"])
    moved = {**last, "timestamp-ms": late - 5}
    edit(base, **{each: metadata[each] for each in members} | {"snapshots": [*earlier, moved]})

    table = lake.open_table(golden.location)
    assert rows(table, snapshot=stored) == wanted
    [newer] = (since := table.since(stored)).snapshots
    assert (newer.store, newer.snapshot_id) == ("base", last["snapshot-id"])
    assert (since.missed, since.rewound) == (False, False)
    assert newer.position == table.position() == table.advance(stored, 1)
    assert table.snapshot_id_at(newer.position) == table.snapshots()[-1].snapshot_id
    assert rows(table, snapshot=newer.position) == rows(table)
    first = table.snapshots()[0].position
    assert table.positions(after=first, upto=stored, limit=1) == [table.position(stored)]
    assert table.since(table.position()).snapshots == ()
    other = lake.Position(table.position(stored).numbers, "main", "1-2")
    assert table.since(other).rewound
    with pytest.raises(lake.NotFoundError, match="has no snapshots at position"):
        table.scan(snapshot=other)
    with pytest.raises(lake.NotFoundError, match="has no snapshots at position"):
        table.scan(snapshot=lake.Position(table.position(stored).numbers))


def test_a_position_whose_base_snapshot_is_left_is_not_rewound_when_changes_expire(tmp_path):
    golden = mixed_copy("keyed_day_minor", tmp_path)
    table = lake.open_table(golden.location)
    head = table.snapshots()[-2].position
    keep_the_newest_snapshot(golden.root / "t_change_")
    since = lake.open_table(golden.location).since(str(head))
    assert not since.rewound


def test_a_base_commit_with_an_earlier_time_than_the_changes_that_it_merged_is_no_state(tmp_path):
    golden = mixed_copy("keyed_day_minor", tmp_path)
    table = lake.open_table(golden.location)
    merge, before = [
        next(each for each in table.snapshots() if each.position.numbers == numbers)
        for numbers in ((2, 2), (2, 1))
    ]
    wanted = rows(table, snapshot=merge.position)
    assert before.store == "change"
    early = before.time_millis - 1
    snapshots = json.loads(newest_metadata(golden.root / "t").read_text())["snapshots"]
    for each in snapshots:
        if each["snapshot-id"] == merge.id:
            each["timestamp-ms"] = early
    edit(golden.root / "t", snapshots=snapshots)
    table = lake.open_table(golden.location)
    for state in ({"as_of": early}, {"snapshot": merge.id}):
        with pytest.raises(
            lake.NotFoundError, match=r"up to sequence number 2, .* would end at 1\."
        ):
            table.scan(**state)
    assert rows(table, as_of=before.time_millis) == wanted
    assert rows(table, snapshot=str(merge.position)) == wanted
    assert table.scan(snapshot=table.position()).count() == table.scan().count()


def test_a_bool_is_no_position_and_a_run_is_not_before_1970(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = pa.schema([("id", pa.int64())])
    table = catalog.create_table("db.t", columns, format="mixed", primary_key=["id"])
    for value in (True, False):
        with pytest.raises(lake.InvalidRequestError, match=f"{value} is not a position"):
            table.scan(snapshot=value)
    for name in ("last_minor", "last_full"):
        with pytest.raises(lake.InvalidRequestError, match=f"{name} is -5, .*before 1970"):
            table.plan_optimizing(**{name: -5})


def test_the_position_before_the_first_commit_has_no_rows_to_read(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table("db.t", schema, format="mixed", primary_key=["id"])
    beginning = str(table.position())
    table.write(pa.table({"id": [1]}))
    with pytest.raises(lake.NotFoundError, match=r"at position main/0\.0, before its first commit"):
        table.scan(snapshot=beginning)

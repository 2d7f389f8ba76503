"""Lookups of rows by key: the rows of one snapshot, from bounded memory, for every format."""

from __future__ import annotations

import random
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from tests.sampling import SEED, count

SCHEMA = pa.schema(
    [
        ("dt", pa.string()),
        ("id", pa.int64()),
        ("note", pa.string()),
        ("parts", pa.list_(pa.int64())),
    ]
)
KEY = ["dt", "id"]
FORMATS = ["paimon", "iceberg", "mixed"]


class Clock:
    """A clock that a test sets, in milliseconds."""

    def __init__(self) -> None:
        self.millis = 1_700_000_000_000

    def after(self, seconds: float) -> None:
        self.millis += int(seconds * 1000)

    @property
    def environment(self) -> Environment:
        return Environment(now_millis=lambda: self.millis)


def created(root: Path, kind: str, schema: Any = SCHEMA, **more: Any) -> Any:
    catalog = lake.open_catalog(str(root), format="paimon" if kind == "paimon" else "iceberg")
    catalog.create_database("shop", exist_ok=True)
    more = {"primary_key": KEY, "partition_by": ["dt"], "format": kind} | more
    if kind == "paimon" and more["primary_key"]:
        more["options"] = {"bucket": "2"}
    if more["format"] != "mixed":
        del more["format"]
    return catalog.create_table("shop.orders", schema, **more)


def put(table: Any, changed: pa.Table) -> None:
    """Replace the rows of these keys."""
    (table.write if table.has_unique_keys else table.upsert)(changed)


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return created(tmp_path, request.param)


def rows(*keys: tuple[str, int], note: str = "a") -> pa.Table:
    days, ids = zip(*keys, strict=True)
    parts = [[number] for number in ids]
    return pa.table([days, ids, [note] * len(keys), parts], schema=SCHEMA)


def keys(*given: tuple[str | None, int | None]) -> pa.Table:
    days, ids = zip(*given, strict=True)
    return pa.table({"dt": pa.array(days, pa.string()), "id": pa.array(ids, pa.int64())})


def notes(lookup: lake.Lookup, *given: tuple[str | None, int | None]) -> list[str | None]:
    return lookup.get_many(keys(*given)).column("note").to_pylist()


def test_each_key_has_its_row_in_the_order_of_the_keys_and_a_missing_one_has_nulls(table):
    put(table, rows(("x", 1), ("x", 2), ("y", 1)))
    lookup = lake.Lookup(table)
    found = lookup.get_many(keys(("y", 1), ("x", 9), ("x", 2), ("y", 1), (None, 2), ("z", 1)))
    given = {"dt": "y", "id": 1, "note": "a", "parts": [1]}
    nulls = dict.fromkeys(SCHEMA.names)
    other = {"dt": "x", "id": 2, "note": "a", "parts": [2]}
    assert found.to_pylist() == [given, nulls, other, given, nulls, nulls]
    assert lookup.scans == 1
    assert lookup.get_many(keys(("x", 9), ("y", 1))).to_pylist() == [nulls, given]
    assert lookup.scans == 1  # also the key that the table does not have
    assert lookup.get_many(keys(("x", 1)).slice(0, 0)).schema == lookup.schema


def test_an_update_is_seen_after_the_interval_and_not_before(table):
    clock = Clock()
    put(table, rows(("x", 1), ("x", 2)))
    how: Any = {"reload_seconds": 10, "environment": clock.environment}
    lookup = lake.Lookup(table, ["note"], **how)
    assert notes(lookup, ("x", 1)) == ["a"]
    put(table, rows(("x", 1), ("x", 2), note="b"))
    clock.after(9.9)
    assert notes(lookup, ("x", 1), ("x", 2)) == ["a", "a"]  # key 2 is read at the same snapshot
    clock.after(0.2)
    assert notes(lookup, ("x", 1), ("x", 2)) == ["b", "b"]
    assert lookup.position == table.position()
    scans = lookup.scans
    clock.after(60)  # without a new snapshot, nothing is read again
    assert notes(lookup, ("x", 1), ("x", 2)) == ["b", "b"]
    assert lookup.scans == scans
    clock.after(-3600)  # a clock that is set back does not stop the reloads
    put(table, rows(("x", 1), note="c"))
    assert notes(lookup, ("x", 1)) == ["c"]


def test_with_an_interval_of_zero_every_call_looks(table):
    lookup = lake.Lookup(table, ["note"], reload_seconds=0)
    assert notes(lookup, ("x", 1)) == [None]  # a table without commits
    assert lookup.scans == 0
    for note in ("a", "b"):
        put(table, rows(("x", 1), note=note))
        assert notes(lookup, ("x", 1)) == [note]


def test_memory_is_bounded_in_rows_and_bytes(tmp_path):
    table = created(tmp_path, "paimon")
    put(table, rows(*(("x", number) for number in range(200)), note="n" * 100))
    by_rows = lake.Lookup(table, max_rows=20)
    by_bytes = lake.Lookup(table, max_bytes=4000)
    order = random.Random(SEED)
    for _ in range(8):
        wanted = [("x", order.randrange(220)) for _ in range(order.randint(1, 40))]
        expected = ["n" * 100 if number < 200 else None for _, number in wanted]
        assert notes(by_rows, *wanted) == notes(by_bytes, *wanted) == expected
        assert 0 < by_rows.cached_rows <= 20
        assert 0 < by_bytes.cached_bytes <= 4000


def test_rows_that_are_used_remain_in_memory(tmp_path):
    table = created(tmp_path, "paimon")
    put(table, rows(*(("x", number) for number in range(20))))
    lookup = lake.Lookup(table, ["note"], max_rows=6)
    for number in range(1, 20):
        before = lookup.scans
        notes(lookup, ("x", number))
        assert lookup.scans == before + 1
        notes(lookup, ("x", 0))
        assert lookup.scans == before + (2 if number == 1 else 1)


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, 10)))
def test_random_lookups_equal_a_join_over_a_full_read(table, seed):
    chance = random.Random(seed)
    lookup = lake.Lookup(table, ["note", "parts"], reload_seconds=0, max_rows=40)
    for step in range(3):
        written = {(chance.choice("xyz"), chance.randrange(60)) for _ in range(30)}
        put(table, rows(*sorted(written), note=f"step {step}"))
        if step == 1:
            table.delete("id < 20")
        known = {(row["dt"], row["id"]): row for row in table.scan().to_arrow().to_pylist()}
        for size in (15, 25):
            wanted = [(chance.choice("xyz"), chance.randrange(70)) for _ in range(size)]
            joined = [known.get(each, {"note": None, "parts": None}) for each in wanted]
            expected = [{"note": each["note"], "parts": each["parts"]} for each in joined]
            assert lookup.get_many(keys(*wanted)).to_pylist() == expected, f"seed {seed}"


def test_more_keys_than_a_condition_lists_are_found_by_their_bounds(table):
    put(table, rows(*(("x", number) for number in range(0, 5000, 2))))
    lookup = lake.Lookup(table, ["id"])
    wanted = np.random.default_rng(SEED).permutation(5000)
    found = lookup.get_many(pa.table({"dt": ["x"] * 5000, "id": wanted})).column("id")
    assert found.to_pylist() == [int(each) if each % 2 == 0 else None for each in wanted]
    assert lookup.scans == 1


def test_a_lookup_reads_only_files_that_can_have_the_keys(table, monkeypatch):
    put(table, rows(("x", 1), ("x", 2)))
    put(table, rows(("y", 1)))
    asked = []
    scan_at = type(table)._scan_at
    monkeypatch.setattr(
        type(table), "_scan_at", lambda self, *a: asked.append(a[-1]) or scan_at(self, *a)
    )
    lake.Lookup(table).get_many(keys(("y", 1)))
    found = table.scan(where=asked[-1]).splits()
    assert 0 < len(found) < len(table.scan().splits())


@pytest.mark.parametrize(
    ("kind", "values", "absent"),
    [
        (pa.int32(), [1, -5], 7),
        (pa.string(), ["é", ""], "e"),
        (pa.binary(), [b"\x00", b""], b"a"),
        (pa.decimal128(10, 2), ["1.50", "-2.25"], "1.51"),
        (pa.date32(), [datetime(2024, 1, 31).date(), datetime(1969, 1, 1).date()], 5),
        (pa.timestamp("us"), [datetime(2024, 1, 31, 10), datetime(1969, 1, 1)], 5),
        (pa.bool_(), [True], False),
        (pa.float64(), [1.5, float("nan")], 2.5),
    ],
)
def test_keys_of_any_type_are_found(tmp_path, kind, values, absent):
    def typed(*given: Any) -> pa.Array:
        texts = pa.array(given) if isinstance(given[0], str) else None
        return pa.array(given, kind) if texts is None else texts.cast(kind)

    schema = pa.schema([("k", kind), ("v", pa.int64())])
    table = created(tmp_path, "paimon", schema, primary_key=[], partition_by=[])
    table.write(pa.table([typed(*values), range(len(values))], schema=schema))
    lookup = lake.Lookup(table, ["v"], keys=["k"])
    asked = pa.concat_arrays([typed(absent), typed(*values)])
    found = lookup.get_many(pa.table({"k": asked})).column("v").to_pylist()
    assert found == [None, *range(len(values))]


def test_keys_may_have_other_types_if_no_value_changes(table):
    put(table, rows(("x", 1)))
    narrow = pa.record_batch({"id": pa.array([1], pa.int8()), "dt": ["x"], "more": [0]})
    assert lake.Lookup(table, ["note"]).get_many(narrow).to_pylist() == [{"note": "a"}]


def test_the_newest_snapshot_is_read_if_the_chosen_one_has_expired(tmp_path):
    table = created(tmp_path, "paimon")
    put(table, rows(("x", 1), ("x", 2)))
    lookup = lake.Lookup(table, ["note"])
    assert notes(lookup, ("x", 1)) == ["a"]
    put(table, rows(("x", 1), ("x", 2), note="b"))
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert notes(lookup, ("x", 1), ("x", 2)) == ["b", "b"]


def altered(root: Path, table: Any, *changes: lake.SchemaChange) -> Any:
    catalog = lake.open_catalog(
        str(root), format="paimon" if table.format == "paimon" else "iceberg"
    )
    catalog.alter_table("shop.orders", *changes)
    return catalog.table("shop.orders")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_change_of_columns_needs_no_commit(tmp_path, kind):
    """A snapshot from before the change is read with the columns of the table."""
    table = created(tmp_path, kind, SCHEMA.append(pa.field("size", pa.int32())))
    put(table, rows(("x", 1)).append_column("size", pa.array([7], pa.int32())))
    running = lake.Lookup(table, ["size"], reload_seconds=0)
    changes = [lake.add_column("more", "INT"), lake.rename_column("note", "text")]
    table = altered(tmp_path, table, *changes)
    found = {"more": None, "text": "a", "size": 7}
    assert lake.Lookup(table, [*found]).get_many(keys(("x", 1))).to_pylist() == [found]
    assert running.get_many(keys(("x", 1))).to_pylist() == [{"size": 7}]
    table = altered(tmp_path, table, lake.update_column_type("size", "BIGINT"))
    lookup = lake.Lookup(table, ["size"])
    assert lookup.schema.field("size").type == pa.int64()
    assert lookup.get_many(keys(("x", 1))).to_pylist() == [{"size": 7}]


def test_a_rollback_to_before_a_change_of_columns_keeps_the_new_columns(tmp_path):
    table = created(tmp_path, "paimon")
    put(table, rows(("x", 1)))
    table = altered(tmp_path, table, lake.add_column("more", "INT"))
    lookup = lake.Lookup(table, ["note", "more"], reload_seconds=0)
    put(table, rows(("x", 1), note="b").append_column("more", pa.array([5], pa.int32())))
    assert lookup.get_many(keys(("x", 1))).to_pylist() == [{"note": "b", "more": 5}]
    table.rollback(snapshot=1)
    for each in (lookup, lake.Lookup(table, ["note", "more"])):
        assert each.get_many(keys(("x", 1))).to_pylist() == [{"note": "a", "more": None}]


def test_a_lookup_in_a_view_of_the_rows_reads_the_view(tmp_path):
    put(created(tmp_path, "paimon"), rows(("x", 1)))
    view = lake.open_catalog(str(tmp_path)).table("shop.orders$audit_log")
    lookup = lake.Lookup(view, ["rowkind", "note"], keys=["dt", "id"])
    assert lookup.get_many(keys(("x", 1))).to_pylist() == [{"rowkind": "+I", "note": "a"}]


def test_a_table_that_lost_a_column_is_refused(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    table = created(tmp_path, "iceberg")
    put(table, rows(("x", 1)))
    lookup = lake.Lookup(table, ["note"], reload_seconds=0)
    assert notes(lookup, ("x", 1)) == ["a"]
    catalog.alter_table("shop.orders", lake.drop_column("note"))
    put(table, rows(("x", 2)).drop_columns("note"))
    with pytest.raises(lake.InvalidRequestError, match="columns must name some of dt, id, parts"):
        notes(lookup, ("x", 1))


def test_a_table_with_a_wider_column_is_refused(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    schema = SCHEMA.append(pa.field("size", pa.int32()))
    table = created(tmp_path, "iceberg", schema)
    lookup = lake.Lookup(table, ["size"], reload_seconds=0)
    catalog.alter_table("shop.orders", lake.update_column_type("size", "BIGINT"))
    put(table, rows(("x", 1)).append_column("size", pa.array([2**40])))
    with pytest.raises(lake.InvalidRequestError, match=r"had the type int32 .* is int64 now"):
        lookup.get_many(keys(("x", 1)))


def test_two_rows_of_a_key_are_refused_and_the_key_is_named(table):
    put(table, rows(("x", 1), ("y", 1), ("y", 2)))
    lookup = lake.Lookup(table, keys=["id"])
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"has more than one row of the key \{'id': 1\}.*table.check\(unique=\[\['id'\]\]\)",
    ):
        lookup.get_many(keys(("x", 2), ("x", 1)))
    assert lookup.get_many(keys(("x", 2))).column("dt").to_pylist() == ["y"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"columns": ["nota"]}, "columns must name some of dt, id, note, parts.*'note'"),
        ({"columns": []}, "columns must be a list of different names of columns, got []"),
        ({"keys": ["key"]}, "columns must name some of dt, id, note, parts"),
        ({"keys": "id"}, "keys must be a list of different names of columns, got 'id'"),
        ({"reload_seconds": -1}, "reload_seconds must be a number, 0 or more, got -1"),
        ({"reload_seconds": "1"}, "reload_seconds must be a number, 0 or more, got '1'"),
        ({"max_rows": 0}, "max_rows must be a whole number, 1 or more, got 0"),
        ({"max_bytes": 1.5}, "max_bytes must be a whole number, 1 or more, got 1.5"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, given, error):
    pattern = error if ".*" in error else re.escape(error)
    with pytest.raises(lake.InvalidRequestError, match=pattern):
        lake.Lookup(created(tmp_path, "paimon"), **given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([1], "keys as a pyarrow Table or RecordBatch, got list"),
        (
            pa.table({"id": [1]}),
            "needs the key column 'dt', but keys has the columns 'id': add the column, or rename",
        ),
        (
            pa.table({"dt": ["x"], "id": ["1"]}),
            "column 'id' has type string, but the table needs int64; convert it before the lookup",
        ),
    ],
)
def test_wrong_keys_are_named(table, given, error):
    with pytest.raises(lake.InvalidRequestError, match=re.escape(error)):
        lake.Lookup(table).get_many(given)


def test_a_table_without_key_needs_the_names_of_key_columns(tmp_path):
    table = created(tmp_path, "iceberg", primary_key=[])
    table.write(rows(("x", 1)))
    with pytest.raises(lake.InvalidRequestError, match="no primary key and no identifier fields"):
        lake.Lookup(table)
    table.write(pa.table([["x"], [None], ["b"], [[]]], schema=SCHEMA))
    assert notes(lake.Lookup(table, keys=["id"]), ("x", 1), ("x", None)) == ["a", None]


def test_a_lookup_in_no_table_is_refused():
    with pytest.raises(lake.InvalidRequestError, match="a Lookup needs a table"):
        lake.Lookup("shop.orders")  # type: ignore[arg-type]

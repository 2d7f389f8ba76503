"""Every golden case of merging, through the public API: written by us, read as Java reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.tag import Tag, create_tag
from tests.golden.tables import HOW_TO_UNSKIP
from tests.golden.values import assert_same_rows, rows_of
from tests.golden_cases import Batch, Change, GoldenCase, golden_cases

WITHOUT_A_SNAPSHOT = {"cl-020": 4}
"""Cases in which the reference upgrades files of an overwrite in its own COMPACT snapshot without
changes; here the overwrite does it, and the numbers after it are one less."""

CASES = [pytest.param(case, id=case.id) for case in golden_cases()] or [
    pytest.param(None, id="none", marks=pytest.mark.skip(reason=HOW_TO_UNSKIP))
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", CASES)
def test_the_table_holds_and_tells_what_java_s_does(case: GoldenCase):
    catalog = lake.open_catalog(f"memory://golden-{case.id}/")
    catalog.create_database("shop", exist_ok=True)
    try:
        check(case, catalog)
    finally:
        catalog.drop_database("shop", cascade=True)


def check(case: GoldenCase, catalog: lake.Catalog) -> None:
    phase = case.expected.get("error", {}).get("phase")
    if phase == "create":
        with pytest.raises(lake.LakeError):
            create(case, catalog)
        return
    create(case, catalog)
    failing = {error["batch"] for error in case.expected.get("batch_errors", ())}
    is_every_snapshot_there = True
    for number, batch in enumerate(case.batches):
        if number in failing:
            with pytest.raises(lake.LakeError):
                apply(case, catalog, batch)
        elif batch.content.get("error_ok"):
            is_every_snapshot_there = try_to_apply(case, catalog, batch)
        else:
            apply(case, catalog, batch)
    table = catalog.table("shop.orders")
    if phase == "read":
        with pytest.raises(lake.LakeError):
            table.scan().to_arrow()
        return
    assert_rows(case, table.scan().to_arrow(), [case.row(row) for row in case.expected["rows"]])
    if is_every_snapshot_there:
        assert_changes_by_snapshot(case, table)
    for read in case.reads:
        assert_read(case, catalog, read)
    if "compact" in case.content["title"]:
        kinds = [snapshot["kind"] for snapshot in case.content["observed"]["snapshots"]]
        assert [str(snapshot.commit_kind.value) for snapshot in table.snapshots()] == kinds


def create(case: GoldenCase, catalog: lake.Catalog) -> None:
    catalog.create_table(
        "shop.orders",
        case.schema,
        primary_key=case.primary_key,
        partition_by=case.partition_keys,
        options=case.options,
    )


def try_to_apply(case: GoldenCase, catalog: lake.Catalog, batch: Batch) -> bool:
    """A batch that may be refused; if it is, it leaves nothing."""
    before = catalog.table("shop.orders").latest_snapshot()
    try:
        apply(case, catalog, batch)
    except lake.LakeError:
        assert catalog.table("shop.orders").latest_snapshot() == before
        return False
    return True


def apply(case: GoldenCase, catalog: lake.Catalog, batch: Batch) -> None:
    """Run one step of a case, with a new writer every time, as the reference had."""
    table, content = catalog.table("shop.orders"), batch.content
    unknown = set(content) - {
        "rows",
        "overwrite",
        "alter_options",
        "tag",
        "error_ok",
        "options",
        "compact",
        "sql",
    }
    assert not unknown, f"this version has nothing for {', '.join(sorted(unknown))}"
    own_options = content.get("options", {})
    assert own_options in ({}, {"write-only": "true"})
    if "alter_options" in content:
        changes = [lake.set_option(key, value) for key, value in content["alter_options"].items()]
        catalog.alter_table("shop.orders", *changes)
    if "tag" in content:
        snapshot = table.latest_snapshot()
        assert snapshot is not None
        handle = table._handle
        assert create_tag(handle.storage, handle.layout, Tag(content["tag"], snapshot))
    if "rows" in content:
        kinds = [kind for kind, _ in batch.rows]
        rows = case.table([row for _, row in batch.rows])
        if "rowkind.field" in case.options:
            assert table.write(rows, overwrite=overwritten(case, content)).snapshot_id
        else:
            table.write(rows, kinds=kinds, overwrite=overwritten(case, content))
        if "write-only" not in {*case.options, *own_options} and does_compact(case):
            table.compact(strategy="minor")  # the reference does it in the same commit
    if "compact" in content:
        table.compact(strategy=content["compact"])
    if "sql" in content:
        change_rows(table, content["sql"])


def change_rows(table: lake.Table, statement: str) -> None:
    """``DELETE WHERE …`` or ``UPDATE SET column = 'value' WHERE …``, as the cases write it."""
    said = re.fullmatch(r"(DELETE|UPDATE SET (\w+) = '(\w+)') WHERE (.+)", statement)
    assert said, f"this version has nothing for {statement!r}"
    _, column, value, where = said.groups()
    report = table.delete(where) if column is None else table.update(where, {column: value})
    assert report.rows == 1


def does_compact(case: GoldenCase) -> bool:
    """True if the reference's writers compact after every commit, or after some of them.

    None of them moves postponed rows to their bucket: that is a separate job.
    """
    if case.options.get("bucket") == "-2":
        return False
    return bool(case.primary_key) and case.options.get("lookup-compact") != "gentle"


def overwritten(case: GoldenCase, content: Mapping[str, Any]) -> Any:
    """The rows that INSERT OVERWRITE replaces: partitions that get rows, or all."""
    if "overwrite" not in content:
        return None
    is_dynamic = case.options.get("dynamic-partition-overwrite") != "false"
    if case.partition_keys and not content["overwrite"] and is_dynamic:
        return "dynamic"
    return content["overwrite"]


def assert_changes_by_snapshot(case: GoldenCase, table: lake.Table) -> None:
    """A streaming read from the first snapshot, each with what it brought."""
    mode, member = "delta", "stream_delta"
    if "changelog" in case.expected:
        mode = member = "changelog"
    if member not in case.expected:
        return
    left_out = WITHOUT_A_SNAPSHOT.get(case.id, 1 << 62)
    wanted = {
        part["snapshot"] - (part["snapshot"] > left_out): case.changes(part["rows"])
        for part in case.expected[member]
    }
    for snapshot in table.snapshots():
        found = table.changes(snapshot.id - 1, snapshot.id, mode)
        assert_changes(case, found.to_arrow(), wanted.pop(snapshot.id, []))
    assert not wanted


def assert_read(case: GoldenCase, catalog: lake.Catalog, read: Mapping[str, Any]) -> None:
    """One of the further reads of a case, with the options of Java as our arguments."""
    options = dict(read.get("options", {}))
    for key in {*options} & OF_THE_TABLE:
        catalog.alter_table("shop.orders", lake.set_option(key, options.pop(key)))
    table = catalog.table("shop.orders")
    if read["name"] == "binlog-incremental":
        assert_packed(table, options, read["expected_rows_with_kind"])
        return
    wanted = case.changes(read["expected_rows_with_kind"])
    mode = options.pop("scan.mode", read.get("mode"))
    if mode is not None:
        assert_changes(case, read_by_mode(table, mode, read), wanted)
        return
    window = options.pop("incremental-between", None)
    mode = options.pop("incremental-between-scan-mode", "auto")
    if "system" in read and window is None:
        rows = table.system_table(read["system"]).scan().to_arrow()
        if "rowkind" in rows.column_names:
            assert_changes(case, rows, wanted)
        else:
            assert_rows(case, rows, [row for _, row in wanted])
    elif window is not None:
        shown = table.system_table(read["system"]) if "system" in read else table
        assert_changes(case, shown.changes(*ends_of(window), mode).to_arrow(), wanted)
    else:
        arguments = {TRAVEL[key]: value for key, value in options.items() if key in TRAVEL}
        version = options.get("scan.version")
        if version is not None:
            arguments = {"snapshot" if version.isdigit() else "tag": version}
        assert len(arguments) == len(options), f"this version has nothing for {options}"
        if "snapshot" in arguments:
            arguments["snapshot"] = int(arguments["snapshot"])
        rows = table.scan(**arguments).to_arrow()
        assert_rows(case, rows, [row for _, row in wanted])


def read_by_mode(table: lake.Table, mode: str, read: Mapping[str, Any]) -> pa.Table:
    """The rows of Java's scan modes that name no snapshot."""
    if mode == "latest-delta":
        latest = table.latest_snapshot()
        assert latest is not None
        return table.changes(latest.id - 1, latest.id, "delta").to_arrow()
    stream = table.stream("latest-full" if mode == "streaming-first-plan" else mode)
    rows = next(stream).to_arrow()
    assert stream.next_snapshot == read.get("expected_next_snapshot", stream.next_snapshot)
    return rows


def assert_packed(
    table: lake.Table, options: Mapping[str, str], wanted: Sequence[Sequence[Any]]
) -> None:
    """Updates with both their rows in one, as arrays of each column."""
    ends = ends_of(options["incremental-between"])
    found = table.system_table("binlog").changes(*ends).to_arrow()
    rows = [list(row.values()) for row in found.to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, wanted))


def ends_of(window: str) -> list[Any]:
    return [int(end) if end.isdigit() else end for end in window.split(",")]


OF_THE_TABLE = {"deletion-vectors.merge-on-read", "postpone.merge-on-read"}
TRAVEL = {"scan.snapshot-id": "snapshot", "scan.tag-name": "tag"}


def assert_rows(case: GoldenCase, found: pa.Table, wanted: Sequence[Mapping[str, Any]]) -> None:
    actual, expected = rows_of(found), rows_of(case.table(wanted))
    assert_same_rows(*(loosened(case, rows) for rows in (actual, expected)))
    if case.is_in_order:
        assert actual == expected


def assert_changes(case: GoldenCase, found: pa.Table, wanted: Sequence[Change]) -> None:
    kinds = found["rowkind"].to_pylist()
    actual = loosened(case, rows_of(found.drop_columns(["rowkind"])))
    expected = loosened(case, rows_of(case.table([row for _, row in wanted])))
    assert_same_rows(
        [{"kind": kind, **row} for kind, row in zip(kinds, actual, strict=True)],
        [{"kind": kind, **row} for (kind, _), row in zip(wanted, expected, strict=True)],
    )


def loosened(case: GoldenCase, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows in comparable form: arrays without an order, sketches as estimates."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytes) and case.hint == "sketch":
            return estimate(case, value)
        return (
            sorted(value, key=repr) if isinstance(value, list) and case.has_loose_order else value
        )

    return [{name: plain(value) for name, value in row.items()} for row in rows]


def estimate(case: GoldenCase, sketch: bytes) -> float:
    """The number of distinct values of a sketch, whose bytes may differ."""
    datasketches = pytest.importorskip("datasketches", reason="pip install -e '.[dev]' has it")
    if "hll_sketch" in case.options.values():
        return float(datasketches.hll_sketch.deserialize(sketch).get_estimate())
    return float(datasketches.compact_theta_sketch.deserialize(sketch).get_estimate())

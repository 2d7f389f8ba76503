"""``table.rollback(commit=…)``: a retry does nothing, and reports the first attempt."""

from __future__ import annotations

import dataclasses

import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.rollback.identity import StartedCut
from lakeformat.paimon.table import load_table
from tests.keyed_rows import KeyedRows
from tests.unit.paimon.rollback.test_rollback import Meets, shop

RUN = lake.CommitId("run", 1)
DAY = 24 * 60 * 60 * 1000
BOTH = pytest.mark.parametrize("how", [{}, {"as_latest": False}], ids=["as latest", "cut"])


def ids(table: lake.Table) -> list[int]:
    return snapshot_ids(table._handle.storage, table._handle.layout)


def values(rows: KeyedRows) -> dict[int, str]:
    return {row["k"]: row["v"] for row in rows.table.scan().to_arrow().to_pylist()}


def told(report) -> dict[str, object]:
    members = dataclasses.asdict(report)
    return {name: members[name] for name in members if name not in ("replayed", "reason")}


@BOTH
@pytest.mark.parametrize(
    "target", [{"snapshot": 2}, {"tag": "two"}, {"as_of": 179_999}, {"watermark": 29}]
)
def test_a_repetition_keeps_what_was_committed_in_between(how, target):
    rows = shop()
    rows.table.tags.create("two", snapshot=2)
    first = rows.table.rollback(**target, **how, commit=RUN)
    rows.commit(("+I", 2, "since"))
    again = rows.table.rollback(**target, **how, commit=RUN)

    assert values(rows) == {1: "v2", 2: "since"}
    assert (first.replayed, again.replayed) == (False, True)
    assert told(first) == told(again)
    assert "nothing was done" in again.reason


def test_a_cut_that_goes_on_names_the_snapshots_that_it_keeps(monkeypatch):
    rows = shop()

    def crash(cut: StartedCut, report: object) -> None:
        raise OSError("crashed")

    with monkeypatch.context() as patch:
        patch.setattr(StartedCut, "finish", crash)
        with pytest.raises(OSError, match="crashed"):
            rows.table.rollback(snapshot=2, as_latest=False, commit=RUN)
    rows.commit(("+I", 2, "since"))
    report = rows.table.rollback(snapshot=2, as_latest=False, commit=RUN)
    assert (report.target, report.snapshot_id, ids(rows.table)) == (2, 3, [1, 2, 3])
    assert (
        report.reason
        == "an earlier attempt rolled back to snapshot 2; later commits, up to snapshot 3, are kept"
    )


@BOTH
def test_also_where_the_first_try_found_nothing_to_do(how):
    rows = shop()
    rows.table.rollback(snapshot=4, **how, commit=RUN)
    rows.commit(("+I", 2, "since"))
    assert rows.table.rollback(snapshot=4, **how, commit=RUN).replayed
    assert values(rows) == {1: "v4", 2: "since"}


@BOTH
def test_another_identity_is_another_rollback(how):
    rows = shop()
    rows.table.rollback(snapshot=2, **how, commit=RUN)
    rows.commit(("+I", 1, "since"))
    report = rows.table.rollback(snapshot=2, **how, commit=lake.CommitId("other", 1))
    assert (report.replayed, values(rows)) == (False, {1: "v2"})


@BOTH
def test_one_identity_with_two_targets_is_refused(how):
    rows = shop()
    rows.table.rollback(snapshot=2, **how, commit=RUN)
    with pytest.raises(lake.InvalidRequestError, match="a rollback to snapshot 2, not to 1"):
        rows.table.rollback(snapshot=1, **how, commit=RUN)


def test_an_identity_that_has_written_rows_is_refused():
    rows = shop()
    rows.table.write(rows.table.scan().to_arrow(), overwrite={}, commit=RUN)
    with pytest.raises(lake.InvalidRequestError, match="is snapshot 5, which is not a rollback"):
        rows.table.rollback(snapshot=2, commit=RUN)


@BOTH
def test_a_dry_run_has_no_identity(how):
    rows = shop()
    rows.table.rollback(snapshot=2, **how, commit=RUN)
    rows.commit(("+I", 1, "since"))
    planned = rows.table.rollback(snapshot=2, **how, commit=RUN, dry_run=True)
    assert (planned.replayed, values(rows)) == (False, {1: "since"})


def test_a_twin_that_was_faster_is_the_answer():
    rows = shop()
    handle = rows.table._handle

    def twin() -> None:
        rows.table.rollback(snapshot=2, commit=RUN)

    late = load_table(Meets(handle.storage, 5, before=twin), handle.layout, handle.environment)
    report = late.rollback(snapshot=2, commit=RUN)
    assert (report.replayed, report.snapshot_id, ids(rows.table)) == (True, 5, [1, 2, 3, 4, 5])


def test_going_back_to_a_rollback_is_not_taken_for_it():
    rows = shop()
    rows.table.rollback(snapshot=2, commit=RUN)
    rows.commit(("+I", 1, "since"))
    report = rows.table.rollback(snapshot=5, commit=lake.CommitId("run", 2))
    again = rows.table.rollback(snapshot=5, commit=lake.CommitId("run", 2))
    assert (report.target, again.target, again.replayed) == (5, 5, True)


def test_a_cut_of_which_nothing_tells_any_more_is_not_repeated():
    rows = shop()
    rows.clock.millis = 1_700_000_000_000
    began = lake.CommitId("run", 1, first_try_millis=rows.clock.millis)
    rows.clock.millis += 8 * DAY
    with pytest.raises(lake.CommitUndecidableError, match="began more than 7 days ago"):
        rows.table.rollback(snapshot=2, as_latest=False, commit=began)
    assert ids(rows.table) == [1, 2, 3, 4]

"""Two states are compared key by key as they are read: no bucket has to fit into memory."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.streams import MOST
from tests.keyed_rows import KeyedRows
from tests.sampling import count, sample

KEYS = 12 * MOST
"""So many are read in several rounds."""
ABSENT = 0
VALUES = np.array(["", "a", "b"])

State: TypeAlias = npt.NDArray[np.int64]
"""By key which of the values it has."""


@pytest.fixture(scope="module")
def history() -> tuple[KeyedRows, list[State]]:
    """A table of many keys, and what it holds at each of its snapshots, from 0 on."""
    table, random = KeyedRows(), np.random.default_rng(7)
    states = [np.full(KEYS, ABSENT)]
    for _ in range(2):
        states.append(_updated(table, states[-1], random))
    table.table.compact()
    states.append(states[-1])
    states.append(_updated(table, states[-1], random))
    table.table.rollback(snapshot=1)
    states.append(states[1])
    return table, states


def _updated(table: KeyedRows, state: State, random: np.random.Generator) -> State:
    """Write some rows that are new, some updated, some as they were, some deleted."""
    keys = random.choice(KEYS, KEYS // 2, replace=False)
    values = random.choice(len(VALUES), len(keys), p=[0.2, 0.4, 0.4])
    kinds = np.where(values == ABSENT, "-D", "+I").tolist()
    table.table.write(pa.table({"k": pa.array(keys, pa.int32()), "v": VALUES[values]}), kinds)
    found = state.copy()
    found[keys] = values
    return found


def _state_of(rows: pa.Table) -> State:
    found = np.full(KEYS, ABSENT)
    keys = rows["k"].to_numpy()
    assert len(np.unique(keys)) == len(keys)
    found[keys] = np.searchsorted(VALUES, rows["v"].to_pylist())
    return found


def _changes(table: lake.Table, first: int, last: int) -> pa.Table:
    return table.changes(first, last, "diff").to_arrow()


WINDOWS = [(0, 2), (1, 3), (1, 4), (2, 3), (4, 5), (3, 5), (1, 5)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("first", "last"), WINDOWS)
def test_a_difference_of_many_rows_leads_from_one_state_to_the_other(history, first, last):
    """The difference may include unchanged rows, but no deleted keys."""
    table, states = history
    before, after = states[first], states[last]
    found = _state_of(_changes(table.table, first, last))
    is_told = found != ABSENT
    assert (found[is_told] == after[is_told]).all()
    assert (is_told | (before == after) | (after == ABSENT)).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("first", "last"), WINDOWS)
def test_with_what_is_gone_the_difference_is_exact(history, first, last):
    table, states = history
    before, after = states[first], states[last]
    told = _changes(table.catalog.table("shop.t$audit_log"), first, last)
    is_gone = np.array(told["rowkind"].to_pylist()) == "-D"
    gone, come = (_state_of(told.filter(pa.array(rows))) for rows in (is_gone, ~is_gone))
    assert (gone == np.where(after == ABSENT, before, ABSENT)).all()
    assert (come == np.where(after == before, ABSENT, after)).all()


def test_it_comes_in_pieces_in_the_order_of_keys(history):
    table, states = history
    pieces = [*table.table.changes(0, 2, "diff").to_batches()]
    assert max(piece.num_rows for piece in pieces) < KEYS / 2
    assert sum(piece.num_rows for piece in pieces) == np.count_nonzero(states[2])
    ends = [(piece["k"][0].as_py(), piece["k"][-1].as_py()) for piece in pieces]
    assert all(end < start for (_, end), (start, _) in pairwise(ends))


@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
        {"merge-engine": "first-row"},
        {"bucket": "-2", "postpone.merge-on-read": "true"},
        {"bucket": "-2"},
    ],
    ids=["deletion vectors", "merge on read", "first row", "postponed", "hidden while postponed"],
)
def test_a_difference_has_the_rows_that_scans_of_the_two_states_show(options):
    """Some scans do not show rows of level 0 before a compaction."""
    rows = KeyedRows(options)
    rows.commit(("+I", 1, "a"), ("+I", 2, "a"))
    rows.table.compact()
    rows.commit(("+I", 2, "b"), ("+I", 3, "b"))
    rows.commit(("+I", 1, "c"), ("+I", 4, "c"))
    rows.table.compact()
    rows.commit(("+I", 5, "d"))
    last = rows.table.latest_snapshot().id
    audit_log = rows.catalog.table("shop.t$audit_log")
    states = {number: _shown(rows.table, number) for number in range(1, last + 1)}
    pairs = list(combinations(states, 2))
    for first, until in sample(pairs, count(6, whole=len(pairs))):
        before, after = states[first], states[until]
        found = _changes(rows.table, first, until)
        assert (
            before | dict(zip(*found.select(["k", "v"]).to_pydict().values(), strict=True)) == after
        )
        found = audit_log.changes(first, until, "diff").to_arrow()
        assert "-D" not in found["rowkind"].to_pylist()
        assert (
            before | dict(zip(*found.select(["k", "v"]).to_pydict().values(), strict=True)) == after
        )


@pytest.mark.parametrize("where", [None, "p = 'a' AND k = 2"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_difference_merges_postponed_rows_as_scans_do(vectors, where):
    """A partition with postponed rows may have other bucket counts in the two states."""
    rows = KeyedRows(
        {
            "bucket": "-2",
            "postpone.merge-on-read": "true",
            "postpone.default-bucket-num": "2",
            "deletion-vectors.enabled": vectors,
        },
        partitioned=True,
    )
    rows.commit(("+I", "a", 1, "old"), ("+I", "a", 2, "old"), ("+I", "b", 1, "old"))
    rows.table.compact()
    rows.commit(("+I", "a", 1, "new"), ("+I", "a", 3, "old"), ("-D", "a", 2, "old"))
    rows.commit(("+I", "a", 2, "new"), ("-D", "b", 1, "old"), ("+I", "b", 2, "new"))
    rows.table.compact()
    rows.commit(("-D", "a", 3, "old"), ("+I", "b", 2, "new"))
    rows.table.rescale(bucket=3)
    rows.commit(("+I", "a", 4, "new"), ("+I", "b", 1, "new"))
    audit_log = rows.catalog.table("shop.t$audit_log")
    last = rows.table.latest_snapshot().id
    states = {
        number: set(_tuples(rows.table.scan(snapshot=number, where=where)))
        for number in range(1, last + 1)
    }
    pairs = list(combinations(states, 2))
    for first, until in sample(pairs, count(5, whole=len(pairs))):
        before, after = states[first], states[until]
        kept = {row[:2] for row in after}
        new = {("+I", *row) for row in after - before}
        deleted = {("-D", *row) for row in before if row[:2] not in kept}
        changes = audit_log.changes(first, until, "diff", where=where)
        found = _tuples(changes)
        assert sorted(found) == sorted(new | deleted)
        assert sorted(row for part in changes.parts() for row in _tuples(part)) == sorted(found)
        without_deletes = _tuples(rows.table.changes(first, until, "diff", where=where))
        assert new <= set(without_deletes) <= {("+I", *row) for row in after}


def _tuples(rows: lake.Rows) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in rows.to_arrow().to_pylist()]


def _shown(table: lake.Table, snapshot: int) -> dict[int, str]:
    return dict(zip(*table.scan(snapshot=snapshot).to_arrow().to_pydict().values(), strict=True))


@pytest.mark.parametrize("reads_parts", [False, True])
@pytest.mark.parametrize(("source", "target"), [("a", "b"), ("b", "a")])
def test_a_moved_key_is_deleted_before_it_is_added(source, target, reads_parts):
    """Keys of a table whose primary key lacks the partition column move between partitions."""
    catalog = lake.open_catalog(f"memory://{uuid4()}/wh")
    catalog.create_database("shop")
    columns = [("p", "STRING NOT NULL"), ("k", "INT"), ("v", "STRING")]
    table = catalog.create_table(
        "shop.t", columns, primary_key=["k"], partition_by=["p"], options={"bucket": "-1"}
    )

    def rows(*values: tuple[str, int, str]) -> pa.Table:
        return pa.table(dict(zip("pkv", zip(*values, strict=True), strict=True)))

    table.write(rows((source, 1, "old"), (target, 2, "old"), (source, 3, "same")))
    table.write(rows((target, 1, "new"), (source, 2, "new"), ("c", 4, "new")))
    changes = catalog.table("shop.t$audit_log").changes(1, mode="diff")
    read = [part.to_arrow() for part in changes.parts()] if reads_parts else [changes.to_arrow()]
    told = [tuple(row.values()) for row in pa.concat_tables(read).to_pylist()]
    assert sorted(told[:2]) == sorted([("-D", source, 1, "old"), ("-D", target, 2, "old")])
    assert [row[0] for row in told[2:]] == ["+I"] * 3
    state = {1: (source, "old"), 2: (target, "old"), 3: (source, "same")}
    for kind, p, k, v in told:
        state.pop(k, None)
        state |= {k: (p, v)} if kind == "+I" else {}
    assert state == {1: (target, "new"), 2: (source, "new"), 3: (source, "same"), 4: ("c", "new")}

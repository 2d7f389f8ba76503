"""Random histories of streams, batches, optimizing, resizing and expiry equal a replay by
transaction.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.mixed.batch.lease import LEASE_MILLIS, Lease
from tests.crash.simulated import NOW_MILLIS, Clock
from tests.sampling import SEED, count
from tests.unit.mixed.edited_stores import edit

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
Rows = dict[tuple[int, str], str]
HOUR = 3_600_000


@dataclass
class History:
    """A table, and what was committed to it: the transaction and the changes of each commit."""

    draw: random.Random
    root: Path
    clock: Clock = field(default_factory=lambda: Clock(NOW_MILLIS))
    batch: Any = None
    log: list[tuple[int, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    is_stale: bool = False
    """True if the lease of the open batch was not renewed in time."""

    def table(self) -> lake.MixedTable:
        found = lake.open_table(str(self.root / "db/t"))
        assert isinstance(found, lake.MixedTable)
        pair = found._pair
        world = replace(pair.base.environment, now_millis=self.clock)
        return lake.MixedTable(replace(pair, base=replace(pair.base, environment=world)))

    def given(self) -> tuple[pa.Table, list[str]]:
        places = [
            (self.draw.randrange(5), self.draw.choice("xy"))
            for _ in range(self.draw.randrange(1, 6))
        ]
        values = [f"{len(self.steps)}-{number}" for number in range(len(places))]
        kinds = [self.draw.choice(["+I", "+U", "-D"]) for _ in places]
        keys, parts = zip(*places, strict=True)
        return pa.table([keys, parts, values], schema=COLUMNS), kinds

    def stream(self) -> None:
        rows, kinds = self.given()
        table = self.table()
        table.write(rows, kinds=kinds)
        newest = table.change.snapshots()[-1].snapshot.sequence_number
        self.log.append((newest, changed(rows, kinds)))

    def begin(self) -> None:
        try:
            batch = self.table().begin()
        except lake.LockUnavailableError:
            assert self.batch is not None
            return
        assert contents(batch) == self.replayed(batch.transaction)
        if self.batch is not None:  # its lease was stale
            with pytest.raises(lake.LockUnavailableError):
                self.batch.write(self.given()[0])
        self.batch, self.is_stale = batch, False

    def commit(self) -> None:
        if self.batch is None:
            return
        batch, self.batch = self.batch, None
        how = self.draw.choice(["write", "table", "x", "partitions", "delete", "abort"])
        self.steps[-1] += f" {how} of {batch.transaction}"
        rows, kinds = self.given()
        unique = pa.Table.from_pylist(
            [{"k": k, "p": p, "v": v} for (k, p), v in stored(rows).items()], COLUMNS
        )
        if how == "x":
            unique = unique.filter(pc.equal(unique["p"], "x"))
        try:
            if how == "write":
                batch.write(rows, kinds=kinds)
                self.log.append((batch.transaction, changed(rows, kinds)))
            elif how == "delete":
                seen = contents(batch)
                batch.delete("k < 3")
                self.log.append((batch.transaction, [(k, None) for k in seen if k[0] < 3]))
            elif how == "abort":
                batch.abort()
            else:
                batch.overwrite(unique, {"p": "x"} if how == "x" else how)
                parts = {"table": {"x", "y"}, "x": {"x"}}.get(how, {*unique["p"].to_pylist()})
                self.log.append((batch.transaction, (parts, stored(unique))))
        except (lake.LockUnavailableError, lake.CommitConflictError, lake.SnapshotExpiredError):
            assert self.is_stale, self.steps

    def optimize(self) -> None:
        self.table().compact(strategy=self.draw.choice(["minor", "full"]), executor="serial")

    def resize(self) -> None:
        of, number = self.draw.choice(["change", "base"]), self.draw.choice("1248")
        edit(self.root / "db/t", properties={f"{of}.file-index.hash-bucket": number})

    def expire(self) -> None:
        self.table().expire_snapshots()

    def wait(self) -> None:
        """Time passes; a batch renews its lease, or it is paused for so long."""
        pause = self.draw.choice([LEASE_MILLIS, 2 * HOUR, 20 * HOUR])
        if self.batch is not None and self.draw.random() < 0.7:
            self.clock.millis += pause
            # As its thread does every 20 seconds.
            self.batch._begun.lease._write(self.clock.millis + LEASE_MILLIS)
        else:
            self.clock.millis += pause
            self.is_stale = True

    def replayed(self, before: int | None = None) -> Rows:
        """The rows of a serial replay by transaction."""
        found: Rows = {}
        for transaction, changes in sorted(self.log, key=lambda each: each[0]):
            if before is not None and transaction >= before:
                break
            if isinstance(changes, tuple):
                parts, new = changes
                found = {key: value for key, value in found.items() if key[1] not in parts} | new
                continue
            for key, value in changes:
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return found


def changed(rows: pa.Table, kinds: list[str]) -> list[tuple[tuple[int, str], str | None]]:
    return [
        ((row["k"], row["p"]), row["v"] if kind[0] == "+" else None)
        for row, kind in zip(rows.to_pylist(), kinds, strict=True)
    ]


def stored(rows: pa.Table) -> Rows:
    return {(row["k"], row["p"]): row["v"] for row in rows.to_pylist()}


def contents(table: Any) -> Rows:
    rows = table.scan().to_arrow()
    found = stored(rows)
    assert len(found) == len(rows), rows.to_pylist()
    return found


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=40)))
def test_random_interleavings_equal_a_replay_by_transaction(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(Lease, "keep_renewing", lambda self: None)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    catalog.create_table(
        "db.t",
        COLUMNS,
        format="mixed",
        primary_key=["k", "p"],
        partition_by=["p"],
        options={"change.file-index.hash-bucket": "2", "base.file-index.hash-bucket": "1"},
    )
    short = {
        "self-optimizing.minor.trigger.interval": "0",
        "snapshot.keep.duration": "5h",
        "change.data.ttl.minutes": "2880",
    }
    edit(tmp_path / "db/t", properties=short)
    history = History(random.Random(seed), tmp_path)
    steps = ["stream"] * 4 + ["begin"] * 3 + ["commit"] * 2 + ["optimize"] * 2
    steps += ["resize", "expire", "wait"]
    for _ in range(count(25, whole=60)):
        history.steps.append(history.draw.choice(steps))
        getattr(history, history.steps[-1])()
        assert contents(history.table()) == history.replayed(), history.steps
    if history.batch is not None:
        history.batch.abort()
    history.clock.millis += LEASE_MILLIS
    assert "wait" not in history.table().compact(strategy="full").sentence
    assert contents(history.table().base) == history.replayed(), history.steps

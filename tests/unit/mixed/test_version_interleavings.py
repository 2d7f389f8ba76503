"""Random histories of a table with a version field equal a model that orders by version first."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.mixed.batch.lease import Lease
from lakeformat.mixed.read import node_deletes
from tests.sampling import SEED, count
from tests.unit.mixed.edited_stores import edit

COLUMNS = pa.schema(
    [("k", pa.int64()), ("p", pa.string()), ("name", pa.string()), ("version", pa.int64())]
)
Key = tuple[int, str]
Row = tuple[str, int | None]
NO_VERSION = -(1 << 63)


@dataclass(frozen=True)
class Change:
    sequence: int
    transaction: int
    offset: int
    key: Key
    version: int | None
    name: str | None
    """None for a delete."""

    @property
    def order(self) -> tuple[int, int, int]:
        version = NO_VERSION if self.version is None else self.version
        return version, self.transaction, self.offset


@dataclass
class Model:
    """The rows of the base store, and all changes; those that are merged are forgotten."""

    base: dict[Key, Row] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=lambda: {"x": 0, "y": 0})
    changes: list[Change] = field(default_factory=list)

    def rows(self, upto: dict[str, int] | None = None) -> dict[Key, Row]:
        newest = {
            key: Change(0, -1, 0, key, version, name) for key, (name, version) in self.base.items()
        }
        for each in self.changes:
            part = each.key[1]
            if self.merged[part] < each.sequence <= (upto or {}).get(part, each.sequence):
                known = newest.get(each.key)
                if known is None or each.order > known.order:
                    newest[each.key] = each
        return {
            each.key: (each.name, each.version) for each in newest.values() if each.name is not None
        }

    def merge(self, upto: dict[str, int]) -> None:
        self.base = self.rows(upto)
        self.merged |= upto


@dataclass
class History:
    """A table, the model of it, and an open batch."""

    draw: random.Random
    root: Path
    model: Model = field(default_factory=Model)
    batch: Any = None
    steps: list[str] = field(default_factory=list)

    def table(self) -> lake.MixedTable:
        found = lake.open_table(str(self.root / "db/t"))
        assert isinstance(found, lake.MixedTable)
        return found

    def given(self) -> tuple[pa.Table, list[str]]:
        """Return rows with kinds; an update has two rows of one key."""
        rows, kinds = [], []
        for number in range(self.draw.randrange(1, 6)):
            row = {"k": self.draw.randrange(5), "p": self.draw.choice("xy")}
            row["name"] = f"{len(self.steps)}-{number}"
            row["version"] = self.draw.choice([None, *range(12)])
            kind = self.draw.choice(["+I", "+U", "-D", "-U"])
            if kind == "-D":
                row["version"] = row["version"] or 1
            if kind == "-U":
                rows.append(row | {"version": self.draw.randrange(12), "name": "before"})
                kinds.append(kind)
                kind = "+U"
            rows.append(row)
            kinds.append(kind)
        return pa.Table.from_pylist(rows, COLUMNS), kinds

    def record(self, rows: pa.Table, kinds: list[str], transaction: int | None = None) -> None:
        newest = self.table().change.snapshots()[-1].snapshot.sequence_number
        for offset, (row, kind) in enumerate(zip(rows.to_pylist(), kinds, strict=True)):
            if kind != "-U":
                name = None if kind == "-D" else row["name"]
                key, place = (row["k"], row["p"]), transaction or newest
                self.model.changes.append(Change(newest, place, offset, key, row["version"], name))

    def stream(self) -> None:
        rows, kinds = self.given()
        self.table().write(rows, kinds=kinds)
        self.record(rows, kinds)

    def begin(self) -> None:
        if self.batch is None:
            self.batch = self.table().begin()
            assert contents(self.batch) == self.model.rows()

    def commit(self) -> None:
        if self.batch is None:
            return
        batch, self.batch = self.batch, None
        how = self.draw.choice(["write", "table", "partitions", "delete", "update", "raise"])
        self.steps[-1] += f" {how} of {batch.transaction}"
        seen = [
            {"k": key[0], "p": key[1], "name": name, "version": version}
            for key, (name, version) in contents(batch).items()
            if key[0] < 3
        ]
        rows = pa.Table.from_pylist(seen, COLUMNS)
        if how == "write":
            rows, kinds = self.given()
            batch.write(rows, kinds=kinds)
            self.record(rows, kinds, batch.transaction)
        elif how == "delete":
            batch.delete("k < 3")
            self.record(rows, ["-D"] * len(rows), batch.transaction)
        elif how == "update":
            batch.update("k < 3", {"name": "updated"})
            rows = pa.Table.from_pylist([each | {"name": "updated"} for each in seen], COLUMNS)
            self.record(rows, ["+U"] * len(rows), batch.transaction)
        elif how == "raise":
            new = [each | {"version": (each["version"] or 0) + 3} for each in seen]
            batch.update("k < 3", {"version": larger})
            rows = pa.Table.from_pylist(new, COLUMNS)
            self.record(rows, ["+U"] * len(rows), batch.transaction)
        else:
            self.overwrite(batch, how)

    def overwrite(self, batch: Any, how: str) -> None:
        rows = [row for row in self.given()[0].to_pylist() if row["name"] != "before"]
        new = {(row["k"], row["p"]): row for row in rows}
        batch.overwrite(pa.Table.from_pylist([*new.values()], COLUMNS), how)
        parts = {"x", "y"} if how == "table" else {key[1] for key in new}
        model = self.model
        model.base = {key: row for key, row in model.base.items() if key[1] not in parts}
        model.base |= {key: (row["name"], row["version"]) for key, row in new.items()}
        model.merged |= dict.fromkeys(parts, batch.transaction)

    def optimize(self) -> None:
        table = self.table()
        before = contents(table)
        table.compact(strategy=self.draw.choice(["minor", "full"]), executor="serial")
        assert contents(table) == before, self.steps
        state = table.scan()._state
        self.model.merge({each: state.merged.sequence(f"p={each}") for each in "xy"})
        assert contents(table.base) == self.model.base

    def resize(self) -> None:
        number = self.draw.choice(["1", "2", "4"])
        for of in ("change", "base"):
            edit(self.root / "db/t", properties={f"{of}.file-index.hash-bucket": number})

    def check(self) -> None:
        wanted = self.model.rows()
        assert contents(self.table()) == wanted, self.steps
        name = self.draw.choice([each.name or "none" for each in self.model.changes] or ["none"])
        where, found = self.draw.choice(
            [
                (f"name = '{name}'", {key: row for key, row in wanted.items() if row[0] == name}),
                ("k = 2", {key: row for key, row in wanted.items() if key[0] == 2}),
                ("version > 6", {key: row for key, row in wanted.items() if (row[1] or 0) > 6}),
            ]
        )
        assert contents(self.table(), where=where) == found, (where, self.steps)


def larger(rows: pa.RecordBatch) -> pa.Array:
    return pc.add(pc.fill_null(rows["version"], 0), 3)


def contents(table: Any, **how: Any) -> dict[Key, Row]:
    rows = table.scan(**how).to_arrow().to_pylist()
    assert max(Counter((row["k"], row["p"]) for row in rows).values(), default=1) == 1, rows
    return {(row["k"], row["p"]): (row["name"], row["version"]) for row in rows}


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=40)))
def test_random_interleavings_keep_the_row_with_the_largest_version(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(Lease, "keep_renewing", lambda self: None)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    catalog.create_table(
        "db.t",
        COLUMNS,
        format="mixed",
        primary_key=["k", "p"],
        partition_by=["p"],
        options={
            "lake.version-field": "version",
            "change.file-index.hash-bucket": "2",
            "base.file-index.hash-bucket": "1",
        },
    )
    edit(tmp_path / "db/t", properties={"self-optimizing.minor.trigger.interval": "0"})
    history = History(random.Random(seed), tmp_path)
    if history.draw.random() < 0.5:  # deletes in parts, as if they did not fit into memory
        monkeypatch.setattr(node_deletes, "_MOST_BYTES", 1)
    steps = ["stream"] * 4 + ["begin"] * 2 + ["commit"] * 2 + ["optimize"] * 2 + ["resize"]
    for _ in range(count(14, whole=60)):
        history.steps.append(history.draw.choice(steps))
        getattr(history, history.steps[-1])()
        history.check()

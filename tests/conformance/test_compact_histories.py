"""Random histories of compactions between the commits of several writers, against a dictionary.

Tables of every merge engine, changelog producer, kind of buckets and file format, with deletion
vectors and without, and append tables. Writers that opened the table at different times write,
delete and overwrite; columns come, go and change; partitions are rescaled, snapshots expire,
orphans are removed; whole compactions, parts of them, sorted ones, and such as were planned long
before they run meet in between, or while another one runs. At every step the rows are those of the
dictionary, every snapshot reads as it did, the changelog leads to what is read, a compaction that
is repeated plans nothing, and no file is missing.

``SEED=7 HISTORIES=1`` runs the history of that seed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.compact.run import run_messages
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.tables.compact_progress import OnUnit
from tests.crash.simulated import Clock
from tests.expired import missing, unneeded
from tests.keyed_rows import MINUTE
from tests.sampling import SEED, count

HISTORIES = count(1, 4, "HISTORIES")
STEPS = int(os.environ.get("STEPS", "25"))
TWO_DAYS = 2 * 24 * 60 * MINUTE
ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
BUCKETS = ("fixed", "dynamic", "postponed", "crossing")
LAYOUTS = ("unaware", "queue", "unordered queue")
_warehouses = itertools.count()

Row = dict[int, Any]
"""Values by the id of their column; those that are not there are null."""
P, K, V, N = 0, 1, 2, 3


def producers_of(engine: str, *, marks: bool) -> list[str]:
    """The producers that an engine allows; docs/changelog.md has the reasons."""
    if engine == "first-row":
        return ["none", "lookup"]
    return ["none", "input", "lookup", *([] if marks else ["full-compaction"])]


class Model:
    """The rows of a table: by key, or all of them."""

    def __init__(self, engine: str | None, *, crossing: bool, ordered: bool) -> None:
        self.engine, self.crossing, self.ordered = engine, crossing, ordered
        self.rows: dict[Any, Row] = {}
        self._count = itertools.count()

    def add(self, kind: str, row: Row) -> None:
        if self.engine is None:
            self.rows[next(self._count)] = row
            return
        key = row[K] if self.crossing else (row[P], row[K])
        there = self.rows.get(key)
        if kind in ("-D", "-U"):
            if kind == "-D":
                self.rows.pop(key, None)
        elif there is None or self.engine == "deduplicate":
            if there is None or not self.ordered or row[N] >= there[N]:
                self.rows[key] = row
        elif self.engine != "first-row":
            values = {name: value for name, value in row.items() if value is not None}
            if self.engine == "aggregation" and N in values:
                values[N] += there.get(N) or 0
            self.rows[key] = {**there, **values, P: there[P]}

    def drop(self, partition: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[P] != partition}


class History:
    """A table, its model, and what everything read when it was made."""

    def __init__(self, seed: int, keyed: bool) -> None:
        self.chance = Random(f"{seed}:{keyed}")
        self.keyed, self.done, self.seen = keyed, list[str](), dict[str, list[str]]()
        self.clock = Clock(20 * 365 * 24 * 60 * MINUTE)
        self.options = self._keyed() if keyed else self._append()
        self.engine = self.options.get("merge-engine") if keyed else None
        self.producer = self.options.get("changelog-producer", "none")
        self.waits = keyed and (
            self.engine == "first-row" or self.marks or self.buckets == "postponed"
        )
        where = f"memory://histories-{next(_warehouses)}/wh"
        self.catalog = lake.open_catalog(where, environment=Environment(now_millis=self.clock))
        self.catalog.create_database("shop")
        self.crossing = self.buckets == "crossing"
        self.table = self.catalog.create_table(
            "shop.t",
            [("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("v", "STRING"), ("n", "BIGINT")],
            primary_key=(["k"] if self.crossing else ["p", "k"]) if keyed else [],
            partition_by=["p"],
            options=self.options,
        )
        self.table._handle.storage._clock = self.clock
        self.writers = [self.table] * 3
        self.model = Model(
            self.engine, crossing=self.crossing, ordered="sequence.field" in self.options
        )
        self.told = Model(
            "deduplicate" if self._tells else self.engine,
            crossing=False,
            ordered=self.model.ordered and not self._tells,
        )
        self.is_told = True
        self.followed = 0
        self.planned: list[CompactUnit] = []
        self.names = itertools.count(1)

    def _keyed(self) -> dict[str, str]:
        choose = self.chance.choice
        engine, self.buckets = choose(ENGINES), choose(BUCKETS)
        self.marks = engine != "first-row" and choose([True, False, False])
        options = {
            "merge-engine": engine,
            "changelog-producer": choose(producers_of(engine, marks=self.marks)),
            "file.format": choose(["parquet", "parquet", "orc", "avro"]),
            "num-sorted-run.compaction-trigger": choose(["1", "2", "3", "5"]),
            "compaction.force-up-level-0": choose(["true", "false"]),
            "deletion-vectors.enabled": str(self.marks).lower(),
            **choose([{}, {"target-file-size": "1 b"}, {"compaction.small-file-ratio": "0"}]),
            **choose([{}, {"file.format.per.level": "0:avro,5:orc"}]),
            **choose([{}, {"compaction.max-size-amplification-percent": "1000000"}]),
        }
        options |= {
            "fixed": {"bucket": choose(["1", "2", "3"])},
            "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
            "postponed": {"bucket": "-2", "postpone.default-bucket-num": choose(["1", "2"])},
            "crossing": {"bucket": "-1", "dynamic-bucket.target-row-num": "3"},
        }[self.buckets]
        if engine == "aggregation":
            options |= {"fields.n.aggregate-function": "sum"}
            options |= {"fields.default-aggregate-function": "last_non_null_value"}
        if options["changelog-producer"] in ("lookup", "full-compaction"):
            options["changelog-producer.row-deduplicate"] = choose(["true", "false"])
        if engine == "deduplicate" and self.buckets != "crossing" and choose([True, False, False]):
            options["sequence.field"] = "n"
        return options

    def _append(self) -> dict[str, str]:
        choose = self.chance.choice
        self.buckets, self.marks = choose(LAYOUTS), choose([True, False])
        options = {
            "deletion-vectors.enabled": str(self.marks).lower(),
            "compaction.min.file-num": choose(["2", "3", "5"]),
            "file.format": choose(["parquet", "parquet", "orc", "avro"]),
            **choose([{}, {"target-file-size": "1 b"}, {"target-file-size": "2 kb"}]),
        }
        if self.buckets == "unaware":
            return {**options, "bucket": "-1"}
        ordered = str(self.buckets == "queue").lower()
        return {
            **options,
            "bucket": choose(["1", "2"]),
            "bucket-key": "k",
            "bucket-append-ordered": ordered,
        }

    @property
    def _tells(self) -> bool:
        return self.producer in ("lookup", "full-compaction")

    def fresh(self) -> lake.Table:
        return self.catalog.table("shop.t")

    # What may happen

    def step(self) -> None:
        self.clock.millis += MINUTE
        acts: list[Callable[[], str]] = [
            *[self.write] * 7,
            *[self.compact] * 4,
            *[self.compact_a_part] * 2,
            *[self.plan_for_later] * 2,
            *[self.run_what_was_planned] * 3,
            *[self.expire] * 2,
            *[self.change_columns] * 2,
            self.reopen,
            self.overwrite,
            self.delete,
            self.rescale,
            self.merge_manifests,
            self.clean,
            *([] if self.keyed else [self.sort]),
        ]
        self.done.append(self.chance.choice(acts)())
        self.follow()

    def write(self) -> str:
        number = self.chance.randrange(len(self.writers))
        return self._written_by(number, self._rows(self.writers[number]), None)

    def overwrite(self) -> str:
        if self.crossing:
            return "keys that cross partitions are not overwritten by partition"
        partition = self.chance.choice("ab")
        rows = [(kind, {**row, P: partition}) for kind, row in self._rows(self.writers[0])]
        return self._written_by(0, [each for each in rows if each[0] == "+I"], partition)

    def _written_by(self, number: int, rows: list[tuple[str, Row]], partition: str | None) -> str:
        if not rows:
            return "no row"
        how = {} if partition is None else {"overwrite": {"p": partition}}
        kinds = [kind for kind, _ in rows] if self.keyed else None
        try:
            self.writers[number].write(self._columns(self.writers[number], rows), kinds, **how)
        except (lake.InvalidRequestError, lake.CommitConflictError):
            assert "rescale" in str(self.done), "only other buckets are a reason to refuse rows"
            self.writers[number] = self.fresh()
            return "a writer that counted other buckets was refused"
        if partition is not None:
            self.model.drop(partition)
            self.is_told = False
        live = {field.id for field in self.fresh().schema.fields}
        for kind, row in rows:
            self.model.add(kind, {name: value for name, value in row.items() if name in live})
        return f"write {rows} by {number}" + (f" over {partition}" if partition else "")

    def _rows(self, table: lake.Table) -> list[tuple[str, Row]]:
        """Some rows as a writer that knows this schema makes them."""
        choose, kinds = self.chance.choice, ["+I"]
        if self.engine == "deduplicate" and not self.model.ordered:
            kinds = ["+I", "+I", "+I", "-D"]
        rows = []
        for _ in range(self.chance.randint(1, 6)):
            row: Row = {P: choose("ab"), K: self.chance.randint(0, 5)}
            for field in table.schema.fields[2:]:
                value = f"v{next(self.names)}" if field.id == V else self.chance.randint(0, 9)
                may_lack = not (self.model.ordered and field.id == N)
                row[field.id] = None if may_lack and self.chance.random() < 0.2 else value
            rows.append((choose(kinds), row))
        return rows

    def _columns(self, table: lake.Table, rows: list[tuple[str, Row]]) -> pa.Table:
        schema = table.schema.arrow_schema()
        named = [{f.name: row[f.id] for f in table.schema.fields} for _, row in rows]
        return pa.Table.from_pylist(named, schema)

    def reopen(self) -> str:
        number = self.chance.randrange(len(self.writers))
        self.writers[number] = self.fresh()
        return f"writer {number} opens the table again"

    def delete(self) -> str:
        if self.waits or self.model.ordered or self.engine not in (None, "deduplicate"):
            return "nothing is deleted by a condition"
        key = self.chance.randint(0, 5)
        self.fresh().delete(f"k = {key}")
        rows = self.model.rows.items()
        self.model.rows = {name: row for name, row in rows if row[K] != key}
        return f"delete {key}"

    def change_columns(self) -> str:
        more = self.fresh().schema.fields[4:]
        name = f"c{next(self.names)}"
        if not more or self.chance.random() < 0.4:
            self.catalog.alter_table("shop.t", lake.add_column(name, "INT"))
            return f"add {name}"
        old = self.chance.choice(more)
        change, said = self.chance.choice(
            [
                (lake.rename_column(old.name, name), f"rename {old.name} {name}"),
                (lake.update_column_type(old.name, "BIGINT"), f"widen {old.name}"),
                (lake.drop_column(old.name), f"drop {old.name}"),
            ]
        )
        self.catalog.alter_table("shop.t", change)
        if said.startswith("drop"):
            for model in (self.model, self.told):
                for row in model.rows.values():
                    row.pop(old.id, None)
        return said

    def compact(self) -> str:
        return self._compacted(self.chance.choice(["full", "minor"]))

    def compact_a_part(self) -> str:
        how: dict[str, Any] = {"partitions": {"p": self.chance.choice("ab")}}
        if self.buckets != "postponed" and self.chance.random() < 0.5:
            how = {"buckets": [0]}
        return self._compacted(self.chance.choice(["full", "minor"]), **how)

    def _compacted(self, strategy: str, **how: Any) -> str:
        executor, rival = self.chance.choice(["serial", "threads"]), self._rival()
        report = self.fresh().compact(
            strategy=strategy, executor=executor, on_progress=rival, **how
        )
        self.follow()
        if rival is None and report.unfinished is None:
            assert self.fresh().plan_compaction(strategy=strategy, **how).units == ()
            if not how and (strategy == "full" or self.producer == "lookup"):
                self.check_all_told()
            if not how and strategy == "full":
                self.check_rows()
        return f"compact {strategy} {how}: {report.snapshot_ids}"

    def _rival(self) -> OnUnit | None:
        """Something else that happens once while a compaction is under way."""
        if self.chance.random() < 0.6:
            return None
        acts = [self.write, self.expire, self.delete, self.run_what_was_planned]
        acts += [self.write, self.overwrite, self.change_columns, self.rescale]
        left = [self.chance.choice(acts), self.chance.choice(acts)]
        if self.chance.random() < 0.5:
            left.append(lambda: str(self.fresh().compact(executor="serial").snapshot_ids))

        def happens(_: object) -> None:
            if left and self.chance.random() < 0.7:
                self.done.append(f"meanwhile {left.pop()()}")
                self.follow()

        return happens

    def plan_for_later(self) -> str:
        strategy = self.chance.choice(["full", "minor"])
        self.planned = list(self.fresh().plan_compaction(strategy=strategy).units)
        return f"plan {len(self.planned)} units for later"

    def run_what_was_planned(self) -> str:
        if not self.planned:
            return "nothing is planned"
        unit = self.planned.pop()
        handle: TableHandle = self.fresh()._handle
        messages: tuple[Any, ...] = ()
        try:
            messages = run_messages(handle, unit)
            report = self.fresh().commit(messages)
        except (lake.CommitConflictError, lake.CorruptTableError, lake.NotFoundError) as refused:
            if messages:
                self.fresh().abort(messages)
            return f"{unit.place} was overtaken: {type(refused).__name__}"
        self.follow()
        return f"{unit.place}, planned at {unit.snapshot.id}, is snapshot {report.snapshot_id}"

    def sort(self) -> str:
        if self.buckets == "queue":
            return "a queue is not sorted"
        how = self.chance.choice(["order", "zorder", "hilbert"])
        self.fresh().compact(order_by=["n", "k"], order_strategy=how, on_progress=self._rival())
        return f"sort {how}"

    def rescale(self) -> str:
        if self.buckets not in ("fixed", "postponed", "queue", "unordered queue"):
            return "no number of buckets to change"
        if self.waits or self._tells:
            self.fresh().compact()
        count = self.chance.randint(1, 3)
        if self.buckets != "postponed":
            self.catalog.alter_table("shop.t", lake.set_option("bucket", str(count)))
        self.fresh().rescale(bucket=count)
        return f"rescale to {count}"

    def merge_manifests(self) -> str:
        return f"merge manifests: {self.fresh().compact_manifests().snapshot_id}"

    def expire(self) -> str:
        keep = self.chance.randint(1, 4)
        if self.fresh().latest_snapshot() is not None:
            self.fresh().expire_snapshots(retain_max=keep, retain_min=keep)
        return f"expire all but {keep}"

    def clean(self) -> str:
        self.clock.millis += TWO_DAYS
        self.fresh().remove_orphans("1 d", dry_run=False, max_share=1)
        return "remove orphans"

    # What has to hold

    def follow(self) -> None:
        """Record the rows of each new snapshot, and replay its changes."""
        table = self.fresh()
        for snapshot in table.snapshots():
            if snapshot.id <= self.followed:
                continue
            self.followed = snapshot.id
            self.seen[snapshot.uuid] = self.read(table, snapshot)
            if self.keyed:
                self._replay(table, snapshot)

    def _replay(self, table: lake.Table, snapshot: lake.Snapshot) -> None:
        if self.producer == "none":
            if snapshot.commit_kind is not CommitKind.APPEND:
                return
            mode = "delta"
        elif snapshot.changelog_manifest_list is None:
            return
        else:
            mode = "changelog"
        found = table.changes(snapshot.id - 1, snapshot.id, mode).to_arrow().to_pylist()
        for change in found:
            kind, row = change.pop("rowkind"), self._by_id(table, change)
            if self._tells and self.is_told:
                there = self.told.rows.pop((row[P], row[K]), None)
                assert (there is not None) == (kind in ("-U", "+U", "-D")) or kind == "+U"
                if kind in ("-U", "-D"):
                    assert self._shown(table, [there]) == self._shown(table, [row]), kind
            self.told.add(kind, row)

    def check(self) -> None:
        table = self.fresh()
        for snapshot in table.snapshots():
            assert self.read(table, snapshot) == self.seen[snapshot.uuid], snapshot.id
        assert missing(table) == set()
        if not self.waits:
            self.check_rows()
        if self.keyed and not self._tells and self.is_told and self.buckets != "postponed":
            assert self._shown(table, self.told.rows.values()) == self._shown(
                table, self.model.rows.values()
            )

    def check_rows(self) -> None:
        table = self.fresh()
        found = self.read(table, None)
        assert found == self._shown(table, self.model.rows.values())

    def check_all_told(self) -> None:
        """The replayed changes equal the rows read; an overwrite starts again."""
        if not self._tells:
            return
        table = self.fresh()
        rows = table.scan().to_arrow().to_pylist()
        if self.is_told:
            assert self._shown(table, self.told.rows.values()) == self.read(table, None)
        elif not table.plan_compaction().units:
            self.is_told, self.told.rows = True, {}
            for row in rows:
                self.told.add("+I", self._by_id(table, row))

    def end(self) -> None:
        self.planned.clear()
        self.fresh().compact()
        self.follow()
        self.check()
        self.check_rows()
        self.check_all_told()
        self.clean()
        assert unneeded(self.fresh()) == set()

    def read(self, table: lake.Table, snapshot: lake.Snapshot | None) -> list[str]:
        """A snapshot that is named is read with the columns of its time."""
        if snapshot is None:
            rows = table.scan().to_arrow().to_pylist()
            return self._shown(table, [self._by_id(table, row) for row in rows])
        handle = table._handle
        fields = read_schema(handle.storage, handle.layout, snapshot.schema_id).fields
        ids = {field.name: field.id for field in fields}
        rows = table.scan(snapshot=snapshot.id).to_arrow().to_pylist()
        return sorted(repr({ids[name]: value for name, value in row.items()}) for row in rows)

    def _by_id(self, table: lake.Table, row: dict[str, Any]) -> Row:
        ids = {field.name: field.id for field in table.schema.fields}
        return {ids[name]: value for name, value in row.items()}

    def _shown(self, table: lake.Table, rows: Iterable[Row]) -> list[str]:
        ids = [field.id for field in table.schema.fields]
        return sorted(repr([row.get(name) for name in ids]) for row in rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_no_compaction_changes_a_row_whatever_happens_between(keyed: bool):
    for seed in range(SEED, SEED + HISTORIES):
        history = History(seed, keyed)
        try:
            for _ in range(STEPS):
                history.step()
                history.check()
            history.end()
        except BaseException as error:
            told = "; ".join(history.done)
            error.add_note(f"replay with SEED={seed} HISTORIES=1: {history.options}: {told}")
            raise

"""Any interleaving of a stream, batches, compactions and rescales equals a replay in the order of
transactions. A batch may be refused only if a rescale ran since its begin.

The transaction of a stream is the snapshot that it commits; that of a batch is right after the
snapshot from which it was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.commit.commit import commit_messages
from lakeformat.paimon.row_changes import attempt
from lakeformat.paimon.transaction_order import write
from tests.keyed_rows import MINUTE, KeyedRows, listed
from tests.sampling import SEED, count

Key = tuple[str, int]
State = dict[Key, str]
PARTITIONS = ("a", "b")
KEYS = range(8)
OPTIONS: list[dict[str, str]] = [
    {},
    {"bucket": "3"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "3"},
    {"bucket": "2", "changelog-producer": "input"},
    {"bucket": "2", "changelog-producer": "lookup"},
    {"bucket": "1", "deletion-vectors.enabled": "true"},
    {"bucket": "1", "overwrite-upgrade": "false"},
    {"bucket": "1", "ignore-delete": "true"},
]


@dataclass
class Replay:
    """A table, and its transactions as functions that change a dict."""

    rows: KeyedRows
    chance: Random
    transactions: list[tuple[int, int, Callable[[State], None]]] = field(default_factory=list)
    written: int = 0
    rescales: int = 0

    @property
    def ignores_deletes(self) -> bool:
        return self.rows.table.options.to_dict().get("ignore-delete") == "true"

    def some_rows(self) -> list[tuple[str, str, int, str]]:
        keys = [(p, k) for p in PARTITIONS for k in KEYS]
        chosen = self.chance.sample(keys, self.chance.randint(1, 6))
        self.written += 1
        kinds = [self.chance.choice(["+I", "+U", "+U", "-D"]) for _ in chosen]
        kinds[0] = "+I" if self.ignores_deletes else kinds[0]  # so that there is a commit
        return [(kind, *key, f"{self.written}") for kind, key in zip(kinds, chosen, strict=True)]

    def merge(self, changes: list[tuple[str, str, int, str]]) -> Callable[[State], None]:
        def apply(state: State) -> None:
            for kind, p, k, v in changes:
                if kind != "-D":
                    state[p, k] = v
                elif not self.ignores_deletes:
                    state.pop((p, k), None)

        return apply

    def stream(self) -> None:
        changes = self.some_rows()
        number = self.rows.commit(*changes)
        self.transactions.append((number, 0, self.merge(changes)))

    def compact(self) -> None:
        self.rows.table.compact(strategy=self.chance.choice(["full", "minor"]))

    @property
    def has_fixed_buckets(self) -> bool:
        return int(self.rows.table.options.bucket) > 0

    def rescale(self) -> None:
        """Change the number of buckets of both partitions, after a compaction if level 0 has rows
        that a rescale must not skip.
        """
        before = int(self.rows.table.options.bucket)
        number = self.chance.choice([each for each in range(1, 5) if each != before])
        self.rows.catalog.alter_table("shop.t", lake.set_option("bucket", str(number)))
        self.rows.table = self.rows.catalog.table("shop.t")
        self.rewrite_buckets()

    def rewrite_buckets(self) -> None:
        options = self.rows.table.options
        if options.changelog_producer != "none" or options.deletion_vectors_enabled:
            self.rows.table.compact()
        self.rows.table.rescale()
        self.rescales += 1

    def expire(self) -> None:
        now = self.rows.clock.millis
        self.rows.table.expire_snapshots(retain_max=1, retain_min=1, older_than=now)

    def replayed(self) -> State:
        state: State = {}
        for _, _, apply in sorted(self.transactions, key=lambda each: each[:2]):
            apply(state)
        return state

    def change_rows(self, began: lake.Position) -> None:
        """A DELETE or an UPDATE by condition."""
        self.written += 1
        least, value, table = self.chance.choice(KEYS), f"{self.written}", self.rows.table
        is_delete = self.chance.random() < 0.5 and not self.ignores_deletes
        where, how = f"k >= {least}", {"read_snapshot": began, "conflict": "transaction-order"}
        if is_delete:
            table.delete(where, **how)
        else:
            table.update(where, {"v": value}, **how)

        def apply(state: State) -> None:
            for key in [key for key in state if key[1] >= least]:
                if is_delete:
                    del state[key]
                else:
                    state[key] = value

        self.transactions.append((began.number, 1, apply))

    def batch(self, began: lake.Position) -> None:
        changes = self.some_rows()
        how = self.chance.choice(["merge", "table", "partitions", "a"])
        if how != "merge":
            changes = [("+I", *change[1:]) for change in changes]
        if how == "a":
            changes = [change for change in changes if change[1] == "a"]
        kinds, *columns = zip(*changes, strict=True) if changes else ((), (), (), ())
        names = self.rows.table.schema.column_names
        types = [pa.string(), pa.int32(), pa.string()]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
        overwrite = {"merge": None, "a": {"p": "a"}}.get(how, how)
        data = pa.table(dict(zip(names, arrays, strict=True)))
        given = list(kinds) if how == "merge" else None
        order = {
            "overwrite": overwrite,
            "read_snapshot": began,
            "conflict": "transaction-order",
        }
        if self.chance.random() < 0.5:
            is_read_once = self.chance.random() < 0.5
            self.rows.table.write(data.to_reader() if is_read_once else data, given, **order)
        else:
            with self.rows.table.new_writer(**order) as writer:
                writer.write(data, given)
            self.rows.table.commit(writer.prepare(), **order)
        replaced = {
            "merge": set(),
            "table": set(PARTITIONS),
            "partitions": {change[1] for change in changes},
            "a": {"a"},
        }[how]
        added = self.merge(changes)

        def apply(state: State) -> None:
            for key in [key for key in state if key[0] in replaced]:
                del state[key]
            added(state)

        self.transactions.append((began.number, 1, apply))


@pytest.mark.parametrize("example", range(count(3, 200, "INTERLEAVINGS")))
def test_interleavings_equal_a_replay_in_the_order_of_transactions(example, monkeypatch):
    """Before some commits of a batch, after it was written, a stream, a compaction or a rescale
    commits.
    """
    chance = Random(f"{SEED}:{example}")
    options = OPTIONS[(SEED + example) % len(OPTIONS)]
    trigger = {"num-sorted-run.compaction-trigger": "2"}
    replay = Replay(KeyedRows({**trigger, **options}, partitioned=True), chance)

    def overtaken(*arguments, **options):
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            works = [replay.stream, replay.stream, replay.compact]
            chance.choice([*works, replay.rescale] if replay.has_fixed_buckets else works)()
        return commit_messages(*arguments, **options)

    for module in (write, attempt):
        monkeypatch.setattr(module, "commit_messages", overtaken)
    with ExitStack() as batches:
        began: lake.Position | None = None
        for _ in range(12):
            actions = ["stream", "stream", "compact", "expire", "batch", "batch"]
            action = chance.choice([*actions, "rescale"] if replay.has_fixed_buckets else actions)
            if action in ("stream", "compact", "expire", "rescale"):
                try:
                    getattr(replay, action)()
                except lake.InvalidRequestError as refused:
                    # An overwrite that was written before the rescale has filled a partition that
                    # was empty then, with the former number of buckets.
                    if not replay.rescales or "rescale the table" not in str(refused):
                        raise
                    replay.rewrite_buckets()
            elif began is None:
                rescales = replay.rescales
                began = batches.enter_context(replay.rows.table.begin())
            else:
                try:
                    chance.choice([replay.batch, replay.batch, replay.change_rows])(began)
                except (lake.CommitConflictError, lake.InvalidRequestError) as refused:
                    assert replay.rescales > rescales  # only a rescale may refuse a batch
                    if "rescale the table" in str(refused):
                        replay.rewrite_buckets()
                    elif not isinstance(refused, lake.CommitConflictError):
                        raise
                batches.close()
                began = None
    if "deletion-vectors.enabled" in options:
        replay.rows.table.compact()
    found = {(p, k): v for p, k, v in listed(replay.rows.table.scan())}
    assert found == replay.replayed(), options
    replay.rows.clock.millis += 48 * 60 * MINUTE
    assert not replay.rows.table.remove_orphans(dry_run=True).files


@pytest.mark.parametrize("work", ["write", "update", "overwrite"])
def test_a_batch_is_refused_if_its_partition_was_rescaled_since_its_begin(work):
    rows = KeyedRows({"bucket": "2"}, partitioned=True)
    rows.commit(("+I", "a", 1, "old"), ("+I", "b", 2, "other"))
    with rows.table.begin() as began:
        rows.catalog.alter_table("shop.t", lake.set_option("bucket", "3"))
        rows.table = rows.catalog.table("shop.t")
        order = {"read_snapshot": began, "conflict": "transaction-order"}
        data = pa.table({"p": ["a"], "k": pa.array([1], pa.int32()), "v": ["new"]})
        works = {
            "write": lambda: rows.table.write(data, **order),
            "update": lambda: rows.table.update("k = 1", {"v": "new"}, **order),
            "overwrite": lambda: rows.table.write(data, overwrite="partitions", **order),
        }
        if work != "overwrite":
            with pytest.raises(lake.InvalidRequestError, match="rescale the table with `lake "):
                works[work]()
        rows.table.rescale()
        with pytest.raises(lake.CommitConflictError, match="Nothing was published; read the table"):
            works[work]()
    with rows.table.begin() as began:
        rows.table.update("k = 1", {"v": "new"}, read_snapshot=began, conflict="transaction-order")
    assert sorted(listed(rows.table.scan())) == [("a", 1, "new"), ("b", 2, "other")]
    rows.clock.millis += 48 * 60 * MINUTE
    assert not rows.table.remove_orphans(dry_run=True).files

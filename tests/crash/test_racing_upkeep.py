"""Writers, expiry, tags, branches and rollbacks on one table, call by call: none meets damage.

Each actor makes one storage call at a time, in an order that a seed decides. What one takes away
another may be reading: that is an error to retry, never ``CorruptTableError``.
``SEED=7 RACES=1`` runs the race of that seed; ``RACES=1000`` runs many more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from tests.crash.scheduler import ScheduledStorage, Scheduler
from tests.crash.simulated import simulated
from tests.sampling import SEED, count

RACES = count(3, 16, "RACES")
BLOCKS = min(8, RACES)
ROUNDS = 4
LAYOUT = TableLayout("wh/shop.db/orders")
ONE_AT_A_TIME = {"file-operation.thread-num": "1"}
TABLES: Mapping[str, Mapping[str, Any]] = {
    "append": {"options": ONE_AT_A_TIME},
    "keyed": {
        "primary_key": ["id"],
        "options": {
            **ONE_AT_A_TIME,
            "bucket": "1",
            "changelog-producer": "input",
            "changelog.num-retained.min": "4",
            "changelog.num-retained.max": "5",
        },
    },
}
RETRYABLE = (
    lake.CommitConflictError,
    lake.NotFoundError,
    lake.AlreadyExistsError,
    lake.CommitOutcomeUnknownError,
)
_numbers = itertools.count(1)

Act = Callable[[lake.Table, Random], object]


def write(table: lake.Table, chance: Random) -> None:
    table.write(pa.table({"id": [next(_numbers)]}))


def compact(table: lake.Table, chance: Random) -> None:
    table.compact(executor="serial", strategy=chance.choice(["minor", "full"]))


def expire(table: lake.Table, chance: Random) -> None:
    table.expire_snapshots(retain_max=chance.randint(1, 2), retain_min=1)


def make_tag(table: lake.Table, chance: Random) -> None:
    kept = table.snapshots()
    table.tags.create(f"t{chance.randrange(3)}", snapshot=chance.choice(kept).id if kept else None)


def delete_tag(table: lake.Table, chance: Random) -> None:
    table.tags.delete(f"t{chance.randrange(3)}", force=True)


def branch(table: lake.Table, chance: Random) -> None:
    table.branches.create("b")
    table.branches.delete("b")


def roll_back(table: lake.Table, chance: Random) -> None:
    tags = [tag.name for tag in table.tags.list()]
    where = {"tag": chance.choice(tags)} if tags else {"snapshot": table.snapshots()[-1].id}
    table.rollback(**where)


def cut_back(table: lake.Table, chance: Random) -> None:
    kept = table.snapshots()
    if kept:
        table.rollback(snapshot=kept[-2:][0].id, as_latest=False)


def look(table: lake.Table, chance: Random) -> None:
    table.scan().to_arrow()
    table.health(unknown=True)
    table.remove_orphans()
    table.expire_snapshots(retain_max=1, retain_min=1, dry_run=True)


ACTS: tuple[Act, ...] = (compact, expire, make_tag, delete_tag, branch, roll_back, cut_back, look)


class Race:
    """Some actors, each of which does one thing again and again."""

    def __init__(self, seed: int, kind: str) -> None:
        self.chance = Random(f"{seed}:{kind}")
        self.memory = MemoryStorage(f"race-{kind}-{seed}")
        catalog = FileSystemCatalog(self.memory, "wh", simulated())
        catalog.create_database("shop")
        table = catalog.create_table("shop.orders", [("id", "BIGINT")], **TABLES[kind])
        for number in range(4):
            write(table, self.chance)
            table.tags.create(f"t{number % 3}", exist_ok=True)
        self.scheduler = Scheduler(f"{seed}:{kind}")
        storage = ScheduledStorage(self.memory, self.scheduler)
        acts = (write, expire, *self.chance.sample(ACTS, 3))
        for number, act in enumerate(acts):
            name = f"{act.__name__}-{number}"
            opened = load_table(storage, LAYOUT, simulated(1_000 + number))
            self.scheduler.add(name, self.actor(act, opened, Random(f"{seed}:{name}")))

    def actor(self, act: Act, table: lake.Table, chance: Random) -> Callable[[], None]:
        def act_often() -> None:
            for _ in range(ROUNDS):
                try:
                    act(table, chance)
                except RETRYABLE:
                    pass
                except lake.InvalidRequestError as refused:  # a rollback that would lose a tag
                    if "history" not in str(refused) and "in use" not in str(refused):
                        raise

        return act_often

    def run(self) -> tuple[list[int], list[int]]:
        """Let all act, then return the rows before and after more upkeep."""
        self.scheduler.run(lambda: None)
        table = load_table(self.memory, LAYOUT, simulated(9_000))
        before = ids(table)
        for tag in table.tags.list():
            table.scan(tag=tag.name).to_arrow()
        table.compact(executor="serial", strategy="full")
        table.expire_snapshots(retain_max=1, retain_min=1)
        return before, ids(table)


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_one_takes_away_is_no_damage_to_another(kind, block):
    for seed in range(SEED + block, SEED + RACES, BLOCKS):
        race = Race(seed, kind)
        try:
            before, after = race.run()
            assert before == after
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} RACES=1; {race.scheduler.trace[-12:]}")
            raise

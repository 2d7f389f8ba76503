"""A process that does one kind of work on a table again and again, and writes down what happens.

    python -m tests.crash.storm_actor TABLE ROLE NUMBER SEED LOG SECONDS

Before a commit its identity is written to LOG, after it what came of it. A process that is started
again with the same words, after it was killed, repeats the commit it was at. With SECONDS 0 it does
that alone, and ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import lakeformat as lake

__all__ = ["ROLES", "ROWS", "entries", "ids_of", "make_table", "start_actor"]

ROOT = Path(__file__).resolve().parents[2]
ROWS = 3
RETRYABLE = (
    lake.CommitConflictError,
    lake.NotFoundError,
    lake.AlreadyExistsError,
    lake.CommitOutcomeUnknownError,
    lake.CommitUndecidableError,
    lake.UnavailableError,
)


def make_table(warehouse: str) -> str:
    """The address of an empty table; its snapshots expire while other actors use them."""
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    options = {"bucket": "2", "commit.max-retries": "1000"}
    return catalog.create_table(
        "shop.orders", [("id", "BIGINT")], primary_key=["id"], options=options
    ).location


def start_actor(
    table: str, role: str, number: int, *, seed: int, log: Path, seconds: float
) -> subprocess.Popen[bytes]:
    """Start an actor, or start it again."""
    words = (table, role, number, seed, log, seconds)
    command = [sys.executable, "-m", "tests.crash.storm_actor", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def entries(log: Path) -> list[dict[str, Any]]:
    """The records of an actor, without a line that a kill truncated."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().split("\n")[:-1] if line.endswith("}")]


def ids_of(number: int, commit: int) -> list[int]:
    """The rows of one commit; no two commits share one."""
    first = (number * 1_000_000 + commit) * ROWS
    return list(range(first, first + ROWS))


class Actor:
    """One process's work, and its log."""

    def __init__(self, address: str, number: int, log: Path, chance: Random) -> None:
        self.table, self.number, self.log, self.chance = (
            lake.open_table(address),
            number,
            log,
            chance,
        )
        self.known = entries(log)
        if log.exists() and not log.read_text().endswith("\n"):
            self.write_down("torn")

    def write_down(self, event: str, **said: Any) -> None:
        with self.log.open("a") as out:
            out.write(
                ("\n" if event == "torn" else "") + json.dumps({"event": event, **said}) + "\n"
            )
            out.flush()
            os.fsync(out.fileno())

    def pending(self) -> dict[str, Any] | None:
        """The commit that was begun last, if nothing is known of what came of it."""
        told = [each for each in self.known if "commit" in each]
        if not told or told[-1]["event"] != "begin":
            return None
        return {key: value for key, value in told[-1].items() if key != "event"}

    def steps(self, what: Callable[[dict[str, Any]], dict[str, Any]], plan: Callable[[], Any]):
        """Commits one after the other, the pending one first."""
        begun = self.pending()
        count = sum(each["event"] == "begin" for each in self.known)
        while True:
            if begun is None:
                planned = plan()
                if planned is None:
                    yield
                    continue
                begun = {"commit": count, **self.moment(), **planned}
                count += 1
                self.write_down("begin", **begun)
            try:
                self.write_down("done", **{**begun, **what(begun)})
            except lake.CommitUndecidableError as error:
                self.write_down("refused", **{**begun, "unknown": True, "error": str(error)})
            except lake.CommitOutcomeUnknownError:
                continue  # the same again
            except RETRYABLE as error:
                self.write_down("refused", **{**begun, "unknown": False, "error": str(error)})
            begun = None
            yield

    def moment(self) -> dict[str, Any]:
        """The start of the first attempt that a later attempt reports."""
        head = self.table.latest_snapshot()
        millis = time.time_ns() // 1_000_000
        return {"millis": millis, "head": None if head is None else head.identity}

    def identity(self, begun: dict[str, Any]) -> lake.CommitId:
        return lake.CommitId(
            self.log.stem,
            begun["commit"],
            first_try_millis=begun["millis"],
            first_try_head=begun["head"],
        )

    def trying(self, act: Callable[[], object]) -> Iterator[None]:
        """Work that changes no rows."""
        while True:
            try:
                act()
            except RETRYABLE as error:
                self.write_down("error", kind=type(error).__name__, error=str(error))
            else:
                self.write_down("did")
            time.sleep(self.chance.uniform(0, 0.1))
            yield


def writer(actor: Actor) -> Iterator[None]:
    def write(begun: dict[str, Any]) -> dict[str, Any]:
        rows = pa.table({"id": ids_of(actor.number, begun["commit"])})
        report = actor.table.write(rows, commit=actor.identity(begun))
        return {"snapshot": report.snapshot_id}

    return actor.steps(write, dict)


def roller(actor: Actor) -> Iterator[None]:
    """Rare, as each takes back rows of other actors."""

    def roll_back(begun: dict[str, Any]) -> dict[str, Any]:
        report = actor.table.rollback(snapshot=begun["target"], commit=actor.identity(begun))
        return {"snapshot": report.snapshot_id}

    def plan() -> dict[str, Any] | None:
        time.sleep(actor.chance.uniform(0.2, 1.0))
        kept = actor.table.snapshots()
        return {"target": actor.chance.choice(kept[-3:]).id} if kept else None

    return actor.steps(roll_back, plan)


def compactor(actor: Actor) -> Iterator[None]:
    def act() -> None:
        actor.table.compact(strategy=actor.chance.choice(["minor", "full"]), executor="serial")

    return actor.trying(act)


def expirer(actor: Actor) -> Iterator[None]:
    def act() -> None:
        actor.table.expire_snapshots(retain_max=actor.chance.randint(4, 12), retain_min=2)

    return actor.trying(act)


def tagger(actor: Actor) -> Iterator[None]:
    def act() -> None:
        name = f"t{actor.chance.randrange(4)}"
        if actor.chance.random() < 0.5:
            actor.table.tags.create(name)
        else:
            actor.table.tags.delete(name)

    return actor.trying(act)


def cleaner(actor: Actor) -> Iterator[None]:
    def act() -> None:
        actor.table.remove_orphans(dry_run=False, max_share=1)
        actor.table.health(unknown=True)

    return actor.trying(act)


def reader(actor: Actor) -> Iterator[None]:
    def act() -> None:
        ids = actor.table.scan().to_arrow()["id"].to_pylist()
        assert len(ids) == len(set(ids))

    return actor.trying(act)


ROLES = {
    "writer": writer,
    "roller": roller,
    "compactor": compactor,
    "expirer": expirer,
    "tagger": tagger,
    "cleaner": cleaner,
    "reader": reader,
}


def main(words: Sequence[str]) -> None:
    """Work until the time is over; a step that has begun is finished."""
    address, role, number, seed, log = words[0], words[1], int(words[2]), words[3], Path(words[4])
    chance = Random(f"{seed}:{role}:{number}:{os.getpid()}")
    actor, until = Actor(address, number, log, chance), time.monotonic() + float(words[5])
    actor.write_down("ready", pid=os.getpid())
    try:
        if float(words[5]) or actor.pending() is not None:
            for _ in ROLES[role](actor):
                if time.monotonic() >= until:
                    break
    except BaseException as error:
        actor.write_down("fatal", kind=type(error).__name__, error=str(error)[:2000])
        raise


if __name__ == "__main__":
    main(sys.argv[1:])

"""Everything at once on one table, as processes that are killed without warning; opt-in.

Writers, compaction, expiry, tags, rollbacks, orphan removal and readers write down what they are
promised. ``STORM_SECONDS=60 bin/test crash -- -s tests/crash/test_storm.py`` prints its seed;
``SEED=7`` kills in the order of that one, as far as the machine repeats itself.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lakeformat as lake
from tests.crash.storm_actor import entries, ids_of, make_table, start_actor
from tests.sampling import SEED

STORM_SECONDS = float(os.environ.get("STORM_SECONDS", "0"))
ACTORS = (
    ("writer", 1),
    ("writer", 2),
    ("roller", 1),
    ("compactor", 1),
    ("expirer", 1),
    ("tagger", 1),
    ("cleaner", 1),
    ("reader", 1),
)
LONGEST_STEP_SECONDS = 600
"""On a machine with much else to do."""


class Storm:
    """The actors of one table, their logs, and who was killed."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.table = make_table(str(directory / "wh"))
        self.seed, self.directory, self.kills = seed, directory, 0
        self.processes = {each: self.start(each, STORM_SECONDS + 600) for each in ACTORS}

    def log(self, actor: tuple[str, int]) -> Path:
        return self.directory / f"{actor[0]}-{actor[1]}.jsonl"

    def start(self, actor: tuple[str, int], seconds: float) -> Any:
        role, number = actor
        log = self.log(actor)
        return start_actor(self.table, role, number, seed=self.seed, log=log, seconds=seconds)

    def rage(self) -> None:
        """Kill one after the other, and start each again; one that ended by itself has failed."""
        chance = Random(self.seed)
        self.wait_until_ready()
        until = time.monotonic() + STORM_SECONDS
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.2, 1.5))
            for actor, process in self.processes.items():
                assert process.poll() is None, f"{actor} ended: {entries(self.log(actor))[-1:]}"
            if not (ready := [actor for actor in ACTORS if self.is_ready(actor)]):
                continue
            actor = chance.choice(ready)
            self.kill(actor)
            self.processes[actor] = self.start(actor, STORM_SECONDS + 600)
        for actor in ACTORS:
            self.kill(actor)

    def is_ready(self, actor: tuple[str, int]) -> bool:
        """True if the process has begun its work."""
        said = [each["pid"] for each in entries(self.log(actor)) if each["event"] == "ready"]
        return self.processes[actor].pid in said

    def wait_until_ready(self) -> None:
        until = time.monotonic() + LONGEST_STEP_SECONDS
        while not all(map(self.is_ready, ACTORS)):
            assert time.monotonic() < until, "the processes do not start"
            time.sleep(0.1)

    def kill(self, actor: tuple[str, int]) -> None:
        self.processes[actor].kill()
        self.processes[actor].wait()
        self.kills += 1

    def finish(self) -> None:
        """Repeat what was begun and has no answer."""
        for actor in ACTORS:
            assert self.start(actor, 0).wait(LONGEST_STEP_SECONDS) == 0, entries(self.log(actor))

    def said(self, role: str) -> list[tuple[int, dict[str, Any]]]:
        actors = [each for each in ACTORS if each[0] == role]
        return [(each[1], entry) for each in actors for entry in entries(self.log(each))]

    def expected(self) -> tuple[set[int], set[int]]:
        """The rows that must be there, and those that may be.

        A rollback shows what its target showed, rows that an earlier rollback took out as well.
        """
        added: dict[int, list[int]] = {}
        may: set[int] = set()
        for number, entry in self.said("writer"):
            ids = ids_of(number, entry["commit"]) if "commit" in entry else []
            if entry.get("unknown"):
                may.update(ids)
            elif is_done(entry):
                added[entry["snapshot"]] = ids
        back = {e["snapshot"]: e["target"] for _, e in self.said("roller") if is_done(e)}
        rows: dict[int, frozenset[int]] = {0: frozenset()}
        for snapshot in range(1, max([*added, *back], default=0) + 1):
            before = rows[back.get(snapshot, snapshot - 1)]
            rows[snapshot] = before.union(added.get(snapshot, ()))
        must = set(rows[max(rows)])
        for target in (e["target"] for _, e in self.said("roller") if e.get("unknown")):
            must &= rows[target]  # it may have been done at any time
            may.update(*rows.values())
        return must, must | may


def is_done(entry: dict[str, Any]) -> bool:
    return entry["event"] == "done" and entry["snapshot"] is not None


@pytest.mark.skipif(not STORM_SECONDS, reason="opt-in: set STORM_SECONDS, such as 60")
def test_after_a_storm_every_promised_row_is_there_and_no_log_tells_of_damage(tmp_path):
    storm = Storm(tmp_path, SEED)
    try:
        storm.rage()
    finally:
        for process in storm.processes.values():
            process.kill()
    storm.finish()

    logs = {actor: entries(storm.log(actor)) for actor in ACTORS}
    fatal = [entry for log in logs.values() for entry in log if entry["event"] == "fatal"]
    assert fatal == []
    table = lake.open_table(storm.table)
    must, may = storm.expected()
    for _ in range(2):
        ids = table.scan().to_arrow()["id"].to_pylist()
        assert len(ids) == len(set(ids))
        assert must <= set(ids) <= may, (sorted(must - set(ids)), sorted(set(ids) - may))
        table.compact(executor="serial", strategy="full")
        table.expire_snapshots(retain_max=1, retain_min=1)
        table.remove_orphans("0 s", dry_run=False, allow_younger=True, max_share=1)
    for tag in table.tags.list():
        table.scan(tag=tag.name).to_arrow()
    counts = Counter((actor[0], entry["event"]) for actor, log in logs.items() for entry in log)
    print(f"{storm.kills} kills in {STORM_SECONDS:.0f} s; {len(must)} rows; {dict(counts)}")
    idle = [role for role, _ in ACTORS if not counts[role, "done"] + counts[role, "did"]]
    assert must
    assert idle == []

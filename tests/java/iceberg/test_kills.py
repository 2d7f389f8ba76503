"""Our writer is killed again and again while Java changes the same table of a SQL catalog.

After each kill the table is as before or as after the change that was under way; no acknowledged
change is lost, no deleted row is read again, and all readers have the same rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any, TypeAlias

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.errors import PySparkException

from tests.java.iceberg.conftest import JavaIceberg
from tests.java.iceberg.killed_writer import (
    FIRST_KEY_OF_OTHERS,
    Journal,
    Model,
    open_table,
    start_writer,
)
from tests.java.iceberg.test_in_turns import read_by_us, values
from tests.sampling import SEED, count

KILLS = count(6, 40, "KILLS")
ROWS = 10
LONGEST_DELAY_SECONDS = 0.3
MOST_CALLS = {"storage": 400, "commit": 20}
MANY = 1000
FOUR_DAYS = 4 * 86_400
LOST = ("CommitFailedException", "ValidationException")
"""Words of Java's error if our writer was first."""
EXPIRED = ("NotFoundException", "FileNotFoundException", "is not an ancestor of")
"""Words of Java's error if our writer expired the snapshot that Java was reading."""
Rows: TypeAlias = list[tuple[Any, ...]]


class JavaWriter:
    """Java's changes of rows with keys of its own, until it is stopped."""

    def __init__(self, java: JavaIceberg) -> None:
        self.java = java
        self.chance = Random(f"{SEED} {java.name} Java")
        self.states: list[Model] = [{}]
        """The rows after each change; the last change may be under way."""
        self.acknowledged = 0
        """The number of the last state that is published."""
        self.is_stopped = False
        self.next_key = FIRST_KEY_OF_OTHERS

    def live(self) -> None:
        """Make changes one after the other; one that lost to our writer changes nothing."""
        works = (self._append, self._append, self._delete, self._compact)
        while not self.is_stopped:
            try:
                self.chance.choice(works)(self.states[-1])
            except (Py4JJavaError, PySparkException) as error:
                if not any(each in str(error) for each in (*LOST, *EXPIRED)):
                    raise
                del self.states[self.acknowledged + 1 :]
            self.acknowledged = len(self.states) - 1

    def _append(self, rows: Model) -> None:
        keys = range(self.next_key, self.next_key + ROWS)
        self.next_key = keys.stop
        added = {key: f"j{key}" for key in keys}
        self.states.append(rows | added)
        self.java.sql(f"INSERT INTO {{table}} VALUES {values(added)}")

    def _delete(self, rows: Model) -> None:
        keys = sorted(rows)[: ROWS // 2]
        if keys:
            self.states.append({key: v for key, v in rows.items() if key not in keys})
            self.java.sql(f"DELETE FROM {{table}} WHERE id BETWEEN {keys[0]} AND {keys[-1]}")

    def _compact(self, rows: Model) -> None:
        self.java.call("rewrite_data_files", "options => map('rewrite-all', 'true')")


class SharedTable:
    """The table, as each of the readers has it."""

    def __init__(self, java: JavaIceberg, tmp_path: Path) -> None:
        database = java.spark.conf.get("spark.sql.catalog.sql.uri").removeprefix("jdbc:sqlite:")
        uri = f"sqlite:///{database.partition('?')[0]}"
        warehouse = java.spark.conf.get("spark.sql.catalog.sql.warehouse")
        self.java = java
        self.place = (warehouse, uri, f"shop.{java.name}")
        self.journal = Journal(tmp_path / "journal", f"{SEED} {java.name}")
        self.theirs = SqlCatalog("sql", uri=uri, warehouse=warehouse)

    def ours(self) -> Any:
        return open_table(*self.place)

    def rows(self, snapshot: int) -> Rows:
        """Return the rows of a snapshot, in which all readers must agree."""
        rows = read_by_us(self.ours(), snapshot=snapshot)
        assert self.java.rows(snapshot) == rows
        found = self.theirs.load_table(self.place[2]).scan(snapshot_id=snapshot).to_arrow()
        assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == rows
        return rows


@contextmanager
def running(java: JavaWriter) -> Iterator[None]:
    """Let Java change the table meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        done: Future[None] = pool.submit(java.live)
        try:
            yield
        finally:
            java.is_stopped = True
        done.result()


def run_until_killed(shared: SharedTable, chance: Random) -> None:
    """Kill a writer at a storage call, beside its commit in the catalog, or at any moment."""
    journal = shared.journal
    way = chance.choice([*MOST_CALLS, "time"])
    if way != "time":
        dies = (way, str(chance.randrange(1, MOST_CALLS[way])))
        process = start_writer(journal, shared.place, changes=MANY, dies=dies)
        assert process.wait() == -SIGKILL
        return
    lines = len(journal.lines()) + 2 * chance.randrange(1, 8)
    with start_writer(journal, shared.place, changes=MANY) as process:
        while len(journal.lines()) < lines and process.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, LONGEST_DELAY_SECONDS))
        process.kill()
    assert process.returncode == -SIGKILL


def parts(rows: Rows) -> tuple[Model, Model]:
    """Return our rows and those of Java; no key is there twice."""
    found = dict(rows)
    assert len(found) == len(rows)
    ours = {key: v for key, v in found.items() if key < FIRST_KEY_OF_OTHERS}
    return ours, {key: v for key, v in found.items() if key >= FIRST_KEY_OF_OTHERS}


@pytest.mark.parametrize("java_iceberg", ["sql"], indirect=True)
@pytest.mark.parametrize("version", [2, 3])
def test_a_killed_writer_beside_java(java_iceberg: JavaIceberg, tmp_path: Path, version: int):
    modes = ", ".join(f"'write.{each}.mode'='merge-on-read'" for each in ("delete", "update"))
    java_iceberg.sql(
        "CREATE TABLE {table} (id BIGINT NOT NULL, v STRING) USING iceberg "
        f"PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version'='{version}', {modes}, "
        "'commit.retry.num-retries'='50', 'write.metadata.previous-versions-max'='5', "
        "'write.delete.isolation-level'='snapshot')"
    )
    shared, java = SharedTable(java_iceberg, tmp_path), JavaWriter(java_iceberg)
    journal, chance = shared.journal, Random(f"{SEED} {java_iceberg.name}")
    with running(java):
        for _ in range(KILLS):
            run_until_killed(shared, chance)
            least = java.acknowledged
            snapshot = shared.ours().latest_snapshot()
            ours, theirs = parts(shared.rows(snapshot.snapshot_id))
            rows, begun, _ = journal.resume()
            assert ours in (rows, begun.after(rows) if begun else rows), begun
            assert theirs in java.states[least:], begun
        assert start_writer(journal, shared.place, changes=1).wait() == 0
    expected = sorted((journal.resume()[0] | java.states[-1]).items(), key=repr)
    table = shared.ours()
    assert [shared.rows(each.snapshot_id) for each in table.snapshots()][-1] == expected
    require_removable_orphans(shared)
    assert [shared.rows(each.snapshot_id) for each in table.snapshots()][-1] == expected


def require_removable_orphans(shared: SharedTable) -> None:
    """Remove what the kills left behind: Java finds the same files, and those that only earlier
    metadata files reach.
    """
    table, by_java = shared.ours(), java_orphans(shared)
    removed: list[str] = []
    report = table.remove_orphans(
        "0 s",
        dry_run=False,
        allow_younger=True,
        max_share=1,
        on_progress=lambda each: removed.append(each.path),
    )
    assert report.removed_files == len(removed) > 0
    assert java_orphans(shared) == by_java - set(removed)


def java_orphans(shared: SharedTable) -> set[str]:
    """Return the orphan files that Java finds. It asks for files of three days, so the files look
    older meanwhile.
    """
    paths = [*Path(shared.ours().location.removeprefix("file://")).rglob("*")]
    ages = [path.stat().st_mtime for path in paths]
    for path, age in zip(paths, ages, strict=True):
        os.utime(path, (age - FOUR_DAYS,) * 2)
    found = shared.java.call("remove_orphan_files", "dry_run => true")
    for path, age in zip(paths, ages, strict=True):
        os.utime(path, (age, age))
    return {address.removeprefix("file:") for (address,) in found}

"""A process that changes an Iceberg table until it is killed, and resumes where it was killed.

    python -m tests.java.iceberg.killed_writer SEED WAREHOUSE URI TABLE JOURNAL CHANGES [CALLS N]

Each change follows from the seed, its number and the rows before it, so the rows follow from the
seed and the journal. A line of the journal is written before and after each change: ``began 7``,
then ``done 7``, or ``lost 7`` after a conflict. A change that only began is repeated with the same
identity. The process makes CHANGES changes, or kills itself at the N-th of the calls in ``CALLS``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog.iceberg.sql import SqlMetastore
from lakeformat.errors import CommitConflictError
from tests.crash.killed_process import STORAGE, die_at

__all__ = ["FIRST_KEY_OF_OTHERS", "Journal", "Model", "arrow", "open_table", "start_writer"]

ROOT = Path(__file__).resolve().parents[3]
ROWS = 10
FIRST_KEY_OF_OTHERS = 1_000_000
CALLS = {"storage": STORAGE, "commit": [(SqlMetastore, "name_next")]}
"""The process dies before or after one of these calls."""
Model: TypeAlias = dict[int, str]
"""The value of each key."""
Work: TypeAlias = Callable[[Any, "Change"], object]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the table, by its number."""

    number: int
    work: Work
    added: Model
    removed: Sequence[int] = ()

    @property
    def commit(self) -> lake.CommitId:
        """The identity, which is the same when the change is repeated."""
        return lake.CommitId("killed-writer", self.number)

    def after(self, rows: Model) -> Model:
        """Return the rows after the change."""
        return {key: v for key, v in rows.items() if key not in self.removed} | self.added


@dataclass(frozen=True, slots=True)
class Journal:
    """The changes that a writer began and completed."""

    path: Path
    seed: str

    def note(self, word: str, number: int) -> None:
        """Add a line."""
        with self.path.open("a") as out:
            out.write(f"{word} {number}\n")

    def lines(self) -> list[list[str]]:
        """Return the words of each line, without a line that a kill truncated."""
        text = self.path.read_text() if self.path.exists() else ""
        return [line.split() for line in text.split("\n")[:-1]]

    def resume(self) -> tuple[Model, Change | None, int]:
        """Return the rows that were acknowledged, the change that only began, and the number of the
        next one.
        """
        rows: Model = {}
        begun: Change | None = None
        number = -1
        for word, number_text in self.lines():
            number = int(number_text)
            change = choose(self.seed, number, rows)
            begun = change if word == "began" else None
            rows = change.after(rows) if word == "done" else rows
        return rows, begun, number + 1


def choose(seed: str, number: int, rows: Model) -> Change:
    """Return the change with a number, which follows ``rows``."""
    chance = Random(f"{seed} {number}")
    keys, first = sorted(rows), number * ROWS
    added = {key: f"v{key}" for key in range(first, first + ROWS)}
    work = chance.choice(WORKS) if keys else append
    if work is append:
        return Change(number, work, added)
    if work is upsert:
        known = chance.sample(keys, min(len(keys), ROWS))
        return Change(number, work, added | {key: f"u{number}" for key in known})
    if work is delete:
        start = chance.randrange(len(keys))
        return Change(number, work, {}, keys[start : start + ROWS])
    return Change(number, work, {})


def append(table: Any, change: Change) -> None:
    table.write(arrow(change.added), commit=change.commit)


def upsert(table: Any, change: Change) -> None:
    table.upsert(arrow(change.added), by=["id"], commit=change.commit)


def delete(table: Any, change: Change) -> None:
    first, last = change.removed[0], change.removed[-1]
    table.delete(f"id >= {first} and id <= {last}", commit=change.commit)


def compact(table: Any, change: Change) -> None:
    table.compact(strategy="full", commit=change.commit)


def compact_in_parts(table: Any, change: Change) -> None:
    table.compact(rewrite_all=True, max_commits=2, commit=change.commit)


def compact_deletes(table: Any, change: Change) -> None:
    table.compact_deletes(rewrite_all=True, commit=change.commit)


def compact_manifests(table: Any, change: Change) -> None:
    table.compact_manifests()


def expire(table: Any, change: Change) -> None:
    table.expire_snapshots(older_than="0 s", retain_min=5)


WORKS: Sequence[Work] = [
    *(append, append, append, upsert, upsert, delete, delete),
    *(compact, compact_in_parts, compact_deletes, compact_manifests, expire),
]


def arrow(rows: Model) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.string())})


def open_table(warehouse: str, uri: str, table: str) -> Any:
    """Open a table of the SQL catalog ``sql``."""
    options = {"catalog-name": "sql"}
    how = {"metastore": "sql", "uri": uri, "options": options}
    return lake.open_catalog(warehouse, format="iceberg", **how).table(table)


def start_writer(
    journal: Journal, place: Sequence[str], *, changes: int, dies: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start or resume a writer; ``place`` is the warehouse, the address of the catalog, and the
    table; ``dies`` the name of calls and the number of the last one.
    """
    words = (journal.seed, *place, str(journal.path), str(changes), *dies)
    command = [sys.executable, "-m", "tests.java.iceberg.killed_writer", *words]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def main(words: Sequence[str]) -> None:
    """Repeat the change that only began, and then make new ones."""
    journal, changes, dies = Journal(Path(words[4]), words[0]), int(words[5]), words[6:]
    table = open_table(*words[1:4])
    with die_at(int(dies[1]), CALLS[dies[0]]) if dies else nullcontext():
        for _ in range(changes):
            rows, begun, number = journal.resume()
            change = begun or choose(journal.seed, number, rows)
            journal.note("began", change.number)
            try:
                change.work(table, change)
            except CommitConflictError:
                journal.note("lost", change.number)
            else:
                journal.note("done", change.number)
                if begun:
                    require_once(table, change.after(rows))


def require_once(table: Any, rows: Model) -> None:
    """Fail unless the repeated change was made once; later changes could hide that it was not."""
    found = table.scan(where=f"id < {FIRST_KEY_OF_OTHERS}").to_arrow()
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(rows.items())


if __name__ == "__main__":
    main(sys.argv[1:])

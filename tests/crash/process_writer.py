"""A process that appends commit after commit to a table, and records each acknowledgement.

    python -m tests.crash.process_writer TABLE WRITER COMMITS ROWS PROMISES

TABLE is an address such as a path; WRITER a number. Every identity is of this writer alone, so that
a restart with the same arguments resumes where it was killed. It ends when all commits are done.
A commit that fails ends it with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import lakeformat as lake

__all__ = ["ids_of", "make_table", "promised", "start_writer"]

ROOT = Path(__file__).resolve().parents[2]


def make_table(warehouse: str) -> str:
    """The address of an empty table for many writers."""
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    options = {"commit.max-retries": "100000"}
    return catalog.create_table("shop.orders", [("id", "BIGINT")], options=options).location


def start_writer(
    table: str, writer: int, *, commits: int, rows: int, promises: Path
) -> subprocess.Popen[bytes]:
    """Start or repeat a writer."""
    words = (table, writer, commits, rows, promises)
    command = [sys.executable, "-m", "tests.crash.process_writer", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def ids_of(writer: int, number: int, *, commits: int, rows: int) -> range:
    """The rows of one commit; no two commits share one."""
    first = (writer * commits + number) * rows
    return range(first, first + rows)


def promised(promises: Path) -> list[int]:
    """The acknowledged commits of a writer, without a line that a kill truncated."""
    if not promises.exists():
        return []
    return [int(line) for line in promises.read_text().split("\n")[:-1]]


def main(words: Sequence[str]) -> None:
    """Append what is not yet promised."""
    address, (writer, commits, rows), promises = words[0], map(int, words[1:4]), Path(words[4])
    table = lake.open_table(address)
    done = promised(promises)
    # The last promise may be missing: its commit is repeated, and must be found.
    with promises.open("a") as out:
        for number in range(len(done), commits):
            ids = ids_of(writer, number, commits=commits, rows=rows)
            commit = lake.CommitId(f"writer-{writer}", number)
            table.write(pa.table({"id": list(ids)}), commit=commit)
            out.write(f"{number}\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

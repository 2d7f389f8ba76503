"""Clocks, names and chance come from ``Environment``, so that a simulation can own them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from lakeformat.catalog.filesystem import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.storage.memory import MemoryStorage

PROJECT = Path(__file__).parents[2]
OF_THE_SYSTEM = {"random", "secrets", "time", "uuid"}
MAY_BE_OF_THE_SYSTEM = re.compile(
    r"\b(?:import|from)\b.*\b(?:random|secrets|time|uuid)\b|\b(?:getpid|urandom|now|today)\b"
)
PARSES = "uuid.UUID"
CALLS = {("os", "getpid"), ("os", "urandom"), ("datetime", "now"), ("date", "today")}
ALLOWED = {
    "lakeformat/environment.py": "the place itself",
    "lakeformat/files/avro/avro_packing.py": "the sync marker of a file, which no name contains",
    "lakeformat/storage/sql/lock.py": "a clock that goes on while a machine sleeps",
    "lakeformat/storage/sql/lock_rows.py": "the token of a lock, which no other process repeats",
    "lakeformat/testing/crashable.py": "a simulation, seeded by the test",
    "lakeformat/testing/storage_suite.py": "compares a storage with the clock of this machine",
    "spark_jobs/frames/executor.py": "the tag of Spark's jobs",
    "spark_jobs/frames/jvm_batches.py": "a column inside of one query",
    "spark_jobs/frames/pieces.py": "a temporary file of one task",
    "spark_jobs/ingestion/file_stream.py": "waits between two rounds of a stream",
    "spark_jobs/runtime/job.py": "the seconds that a job took",
    "spark_jobs/runtime/spark_progress.py": "the group of Spark's jobs",
    "spark_jobs/runtime/watchdog.py": "the process to end",
}
"""Nothing of these ends up in a table, or it is random by its format."""


def sources_of_chance(path: Path) -> set[str]:
    if not MAY_BE_OF_THE_SYSTEM.search(text := path.read_text()):
        return set()
    found, nodes = set(), [*ast.walk(ast.parse(text))]
    imported = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = (node.value.id, node.attr)
            if name[0] in OF_THE_SYSTEM & imported or name in CALLS:
                found.add(".".join(name))
        if isinstance(node, ast.ImportFrom) and node.module in OF_THE_SYSTEM:
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return found - {PARSES}


def test_nothing_else_asks_the_system_for_a_clock_a_name_or_chance():
    found = {
        path.relative_to(PROJECT).as_posix(): names
        for room in ("lakeformat", "spark_jobs")
        for path in sorted((PROJECT / room).rglob("*.py"))
        if (names := sources_of_chance(path))
    }
    assert found.keys() == ALLOWED.keys(), found


def test_a_dropped_table_is_hidden_under_a_name_of_the_environment():
    names = iter(range(1000))
    hidden: list[str] = []

    class Watched(MemoryStorage):
        def rename_directory(self, source: str, target: str) -> None:
            hidden.append(target)
            super().rename_directory(source, target)

    environment = Environment(new_id=lambda: f"id-{next(names)}")
    catalog = FileSystemCatalog(Watched(), "/wh", environment)
    catalog.create_database("shop")
    catalog.create_table("shop.t", [("k", "INT")])
    catalog.drop_table("shop.t")
    checking, dropped = (each.rpartition("/")[2] for each in hidden)
    assert re.fullmatch(r"\.checking-[0-9a-f]{64}-id-\d+", checking)
    assert dropped == ".dropped-id-" + checking.rpartition("-")[2]

"""Runs in pypaimon's own environment: times the planning of one scan and prints it as JSON.

Only the standard library and pypaimon are installed. Arguments: warehouse, table, rounds, and the
condition as JSON, ``[column, operator, value]`` or ``null``.
"""

import json
import sys
import time
from typing import Any

from pypaimon import CatalogFactory


def main(warehouse: str, table_name: str, rounds: int, condition: list[Any] | None) -> None:
    """Plan once as a warm-up, then time several rounds."""
    table = CatalogFactory.create({"warehouse": warehouse}).get_table(table_name)
    names, _, _ = plan(table, condition)
    timings = []
    for _ in range(rounds):
        _, wall, cpu = plan(table, condition)
        timings.append([wall, cpu])
    print(json.dumps({"names": sorted(names), "timings": timings}))


def plan(table: Any, condition: list[Any] | None) -> tuple[list[str], float, float]:
    """Return the file names, wall seconds and CPU seconds of one plan."""
    builder = table.new_read_builder()
    if condition is not None:
        column, operator, value = condition
        predicates = builder.new_predicate_builder()
        builder = builder.with_filter(getattr(predicates, operator)(column, value))
    scan = builder.new_scan()
    wall, cpu = time.perf_counter(), time.process_time()
    splits = scan.plan().splits()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return [file.file_name for split in splits for file in split.files], wall, cpu


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))

"""Plans scans of an Iceberg table with one library, and prints the timings as JSON.

Arguments: ours or pyiceberg; the folder of the table; the number of rounds; a JSON list of two
conditions, ours and PyIceberg's, or ``null``. PyIceberg's environment has none of this library's
modules, so this file imports only the standard library and the library that plans.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ours(folder: str, condition: Any) -> Callable[[], list[str]]:
    """Return a function that plans with this library, and returns the paths of the files."""
    import lakeformat as lake

    table: Any = lake.open_table(folder)
    return lambda: [split.file.path for split in table.scan(where=condition).splits()]


def pyiceberg(folder: str, condition: Any) -> Callable[[], list[str]]:
    """Return a function that plans with PyIceberg."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(f"{folder}/metadata/v1.metadata.json")
    chosen = {} if condition is None else {"row_filter": condition}
    return lambda: [task.file.file_path for task in table.scan(**chosen).plan_files()]


def status_bytes(name: str) -> int:
    """Return a memory size of this process in bytes, from the kernel."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) * 1024


def main(library: str, folder: str, rounds: int, conditions: list[Any] | None) -> None:
    """Plan once to warm up and to measure the peak memory; then time several rounds."""
    if library == "ours":
        plan = ours(folder, conditions and conditions[0])
    else:
        plan = pyiceberg(folder, conditions and conditions[1])
    before = status_bytes("VmRSS")
    paths = sorted(plan())
    peak = status_bytes("VmHWM")
    timings = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        plan()
        timings.append([time.process_time() - cpu, time.perf_counter() - wall])
    print(json.dumps({"paths": paths, "timings": timings, "peak": peak, "grown": peak - before}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))

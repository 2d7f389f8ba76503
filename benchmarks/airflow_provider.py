"""Measures the cost of the Airflow provider for a DAG file, and of its watchers for a triggerer.

``python -m benchmarks.airflow_provider`` writes ``airflow_provider.md``: the modules and CPU time
that a DAG file needs, the storage calls for five hundred watched tables, and the delay of a
commit's event. The tables are on a local disk.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.airflow_imports import import_table, other_versions

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 7
TABLES = 500
COMMITS = 10
INTERVAL = 2.0


def calls_of_a_look(folder: Path) -> Counter[str]:
    """Count the storage calls of one check of many watched tables without changes."""
    from lakeformat.catalog import FileSystemCatalog
    from lakeformat.catalog.heads import Heads
    from lakeformat.environment import SYSTEM
    from lakeformat.storage import LocalStorage
    from tests.counting import CountingStorage

    counting: Any = CountingStorage(LocalStorage())
    catalog = FileSystemCatalog(counting, str(folder), SYSTEM)
    catalog.create_database("shop")
    names = [f"shop.t{number}" for number in range(TABLES)]
    for name in names:
        catalog.create_table(name, [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    heads = Heads(catalog)
    heads.look(names)
    counting.calls.clear()
    if len(heads.look(names).heads) != TABLES:
        raise SystemExit("a check has not found all tables")
    return Counter(name for name, _ in counting.calls)


async def seconds_until_event(folder: Path) -> list[float]:
    """Return the seconds from the end of each commit to its event; the commits end at different
    moments of the poll interval.
    """
    import lakeformat as lake
    from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger

    os.environ["AIRFLOW_CONN_LAKE_BENCH"] = f"lake://?warehouse={folder}"
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("shop", exist_ok=True)
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    orders.write(pa.table({"id": [0]}))
    trigger = LakeSnapshotEventTrigger(
        table="shop.orders", lake_conn_id="lake_bench", poll_interval=INTERVAL, after_snapshot=0
    )
    found = []
    async with aclosing(trigger.run()) as events:  # type: ignore[type-var]  # it is a generator
        await anext(events)
        for number in range(COMMITS):
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(INTERVAL * (0.2 + number / COMMITS))
            await asyncio.to_thread(orders.write, pa.table({"id": [number]}))
            began = time.monotonic()
            await waiting
            found.append(time.monotonic() - began)
    return found


def report(folder: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# What does the Airflow provider cost a DAG file and a triggerer?\n"
    yield (
        "The imports of a DAG file need these modules and this CPU time in addition to those of "
        f"`airflow.sdk` (Airflow {version('apache-airflow')}). Each import ran in {ROUNDS} fresh "
        "processes; the CPU time is the smallest.\n"
    )
    yield from import_table(ROUNDS)
    for other, python in other_versions(RESULTS.parents[1]).items():
        yield f"\nWith Airflow {other}:\n"
        yield from import_table(ROUNDS, python=python)
    yield f"\nLoad {' / '.join(f'{each:.1f}' for each in os.getloadavg())} after the imports."
    calls = calls_of_a_look(folder / "many")
    counted = ", ".join(f"{count} `{name}`" for name, count in sorted(calls.items()))
    yield (
        f"\nA check of {TABLES} watched tables of one database makes these storage calls if no "
        f"table has changed: {counted}.\n"
    )
    seconds = asyncio.run(seconds_until_event(folder / "one"))
    yield (
        f"The poll interval was {INTERVAL:g} s. From the end of a commit to its event, the median "
        f"of {COMMITS} commits was {median(seconds):.2f} s and the longest time "
        f"{max(seconds):.2f} s. The target for the longest is {INTERVAL + 1:g} s.\n"
    )
    yield f"`python -m benchmarks.airflow_provider`, {datetime.now(UTC):%Y-%m-%d}, local disk."


def main(arguments: Sequence[str]) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser("python -m benchmarks.airflow_provider", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the report")
    out = parser.parse_args(arguments).out
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("AIRFLOW_HOME", folder)
        lines = []
        for line in report(Path(folder)):
            lines.append(line)
            print(line, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "airflow_provider.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The second part of ``bin/demo``: a real Airflow ingests the changes of a shop, in two rounds."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

from local_airflow import LocalAirflow

import lakeformat as lake
from lakeformat.types.count_text import counted

HERE = Path(__file__).resolve().parent
DAGS = HERE / "demo_dags"
ORDERS, REVENUE = "shop.web_orders", "shop.revenue"
_PATIENCE_SECONDS = 600

# The changes of the shop, file by file: op, id, item, price. Each file is one commit.
ROUNDS: tuple[tuple[str, ...], ...] = (
    (
        "+I,1,apple,5\n+I,2,pear,7",
        "+I,3,apple,4",
        "+I,4,plum,3\n+U,1,apple,6",
        "+I,5,pear,2",
        "+I,6,quince,9",
        "+U,3,apple,5",
    ),
    ("+U,1,apple,8", "-D,4,plum,3", "+I,7,apple,1\n+I,8,quince,2"),
)


def tell(place: Path, *, keep: bool, engine: str) -> None:
    """Run the second part in the folder ``place``; with ``keep``, keep Airflow running until
    Ctrl-C. Raise ``AirflowTroubleError`` if a run fails.
    """
    warehouse, dags = place / "warehouse", place / "dags"
    shutil.copytree(DAGS, dags, dirs_exist_ok=True)  # beside DAGs of the reader
    connection = {"conn_type": "lake", "extra": {"warehouse": str(warehouse)}}
    spark = {"conn_type": "spark", "host": "local[2]"}
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }
    began = time.monotonic()
    with LocalAirflow(place / "airflow", dags, settings=settings) as airflow:
        _say(
            f"6. Start Airflow at {airflow.url}, only for this machine; this takes a minute or two"
        )
        airflow.wait_for_dags("demo_orders", "demo_revenue", seconds=_PATIENCE_SECONDS)
        print(f"   ready after {time.monotonic() - began:.0f} s")
        for number, files in enumerate(ROUNDS, start=1):
            _say(f"{number + 6}. Round {number}: {len(files)} files with changes of the shop")
            run = _round(airflow, place, warehouse, number, engine)
        _say(f"That took {time.monotonic() - began:.0f} s. Look at the tables:")
        for table in (ORDERS, REVENUE):
            print(f"   $ {lake_command(warehouse, 'snapshots', table)}")
        if keep:
            _say("Open these pages:")
            for name, path in _pages(run).items():
                print(f"   {name}: {airflow.url}/{path}")
            print(f"\nAirflow reads DAGs from {dags}: put your own there.")
            print(f"Airflow keeps running at {airflow.url} until Ctrl-C.", flush=True)
            _sleep_until_interrupted()
        else:
            _say("To look at Airflow's pages, and to try a DAG of your own: bin/demo --keep")


def lake_command(warehouse: Path, *words: str) -> str:
    """Return a ``lake`` command for the warehouse, which works when typed in the working
    directory.
    """
    program = Path(sys.executable).with_name("lake")
    return shlex.join([_from_here(program), "--warehouse", _from_here(warehouse), *words])


def _from_here(path: Path) -> str:
    """Return a path relative to the working directory; unchanged if it is outside."""
    beside = os.path.relpath(path)
    return str(path) if beside.startswith("..") else beside


def _pages(run: str) -> dict[str, str]:
    """Return the paths of pages of the web interface, each under a description of the page."""
    task = f"dags/demo_orders/runs/{urllib.parse.quote(run)}/tasks/compact"
    return {
        "the health of the orders": f"plugin/lake/lake/table/lake_default?name={ORDERS}",
        "the DAG": "dags/demo_orders",
        "what a compaction changed, on the tab Lake snapshots": task,
    }


def _round(airflow: LocalAirflow, place: Path, warehouse: Path, number: int, engine: str) -> str:
    """Run one round, and return the run id of demo_orders."""
    incoming = place / "incoming" / f"round-{number}"
    incoming.mkdir(parents=True, exist_ok=True)
    for position, rows in enumerate(ROUNDS[number - 1]):
        (incoming / f"{position}.csv").write_text(f"op,id,item,price\n{rows}\n")
    conf = {"incoming": str(incoming), "engine": engine}
    print(f"   run demo_orders: land, compact (engine {engine}), expire", flush=True)
    run = airflow.run("demo_orders", conf, seconds=_PATIENCE_SECONDS)
    airflow.wait_for_runs("demo_revenue", number, seconds=_PATIENCE_SECONDS)
    for task in ("health_before", "compact", "expire", "health_after"):
        done = _described(task, airflow.result("demo_orders", run, task))
        print(f"   {task}: {done}", flush=True)
    catalog = lake.open_catalog(str(warehouse))
    print("   the orders now:")
    print(_table(catalog.table(ORDERS), "id"))
    print("   the revenue, updated by the DAG that the asset event started:")
    print(_table(catalog.table(REVENUE), "item"))
    return run


def _described(task: str, result: dict[str, Any]) -> str:
    """Return the result of a task in one or two sentences."""
    report = result["report"]
    if task == "expire":
        return f"{counted(len(report['snapshots']), 'snapshot')} deleted: {result['reason']}"
    return _health(report) if task.startswith("health") else str(result["reason"])


def _health(report: dict[str, Any]) -> str:
    files = counted(report["files"]["files"], "file")
    snapshots = counted(report["snapshots"]["count"], "snapshot")
    why = f"\n           {report['reasons'][0]['finding']}" if report["reasons"] else ""
    return f"score {report['score']} of 100, {report['verdict']}; {files}, {snapshots}{why}"


def _table(table: lake.Table, order: str) -> str:
    rows = table.scan().to_arrow().sort_by(order).to_pandas()
    return "\n".join(f"      {line}" for line in rows.to_string(index=False).splitlines())


def _sleep_until_interrupted() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def _say(sentence: str) -> None:
    print(f"\n{sentence}", flush=True)

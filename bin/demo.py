"""Runs ``bin/demo``: first a table by hand, then tables that a real Airflow maintains.

In the first part a table is created, written twice, inspected and read back, in a few seconds. Then
Airflow starts on this machine (SQLite, no network but loopback). One DAG ingests the changes of a
shop, compacts the table and expires its snapshots. The asset event of that DAG starts a second DAG.
Airflow ends when this command ends. All tables are in one warehouse.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import FrameType

import demo_airflow
import pyarrow as pa
from demo_arguments import DemoRequest, parse_demo
from local_airflow import AirflowTroubleError

import lakeformat as lake

TABLE = "shop.orders"
DEFAULT_WAREHOUSE = Path(__file__).resolve().parent.parent / ".demo" / "warehouse"


def main() -> int:
    """Run the demo; return 2 with one line if this machine cannot run it."""
    asked = parse_demo(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        with _alone(asked):
            _tell(asked.warehouse or (asked.folder and asked.folder / "warehouse"))
            sys.stdout.flush()
            if asked.warehouse is None and not asked.quick:
                place = _fresh_folder(asked.folder)
                demo_airflow.tell(place, keep=asked.keep, engine=asked.engine)
    except KeyboardInterrupt:
        return _complain("interrupted: run the same command to start again", code=130)
    except BrokenPipeError:
        # Python would otherwise try to write the rest at exit, and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(
            "the program that read the output has ended: run the demo without the pipe"
        )
    except subprocess.CalledProcessError as error:  # the command has printed the reason
        return _complain(
            f"{Path(error.cmd[0]).name} failed, as printed above: correct the cause and run the "
            "demo again"
        )
    except AirflowTroubleError as error:
        return _complain(f"{error}; --quick leaves Airflow out")
    except (lake.LakeError, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        word = "--folder" if asked.warehouse is None else "--warehouse"
        return _complain(f"{reason}: with {word}, choose a new folder that you can write to")
    return 0


def _leave(number: int, _frame: FrameType | None) -> None:
    """End the demo through its clean-up code, so that Airflow also ends if the terminal is
    closed.
    """
    sys.exit(128 + number)


def _complain(line: str, *, code: int = 2) -> int:
    print(f"bin/demo: {line}", file=sys.stderr, flush=True)
    return code


def _tell(chosen: Path | None) -> None:
    warehouse = _fresh_warehouse(chosen)
    _say("1. Make a table")
    orders = _make_table(warehouse)
    print(f"   {orders.location}")
    _say("2. Write two days of orders; each write is one commit, one snapshot")
    for day, rows in _days().items():
        report = orders.write(rows, commit=lake.CommitId("demo", day))
        print(f"   day {day}: {report.rows} rows in {report.files} file: {report.reason}")
    _say("3. Write day 2 again, as a retried task would: nothing happens twice")
    again = orders.write(_days()[2], commit=lake.CommitId("demo", 2))
    print(f"   {again.reason}")
    _say("4. The snapshots now")
    _run(demo_airflow.lake_command(warehouse, "snapshots", TABLE))
    _say("5. Read it back")
    print(orders.scan().to_pandas().to_string(index=False))


@contextmanager
def _alone(asked: DemoRequest) -> Iterator[None]:
    """Lock the default folder if this demo uses it, because a demo deletes the files of an earlier
    demo there. Raise ``UnavailableError`` if another demo runs in that folder.
    """
    if asked.warehouse is not None or asked.folder is not None:
        yield  # a folder that no other demo uses
        return
    folder = DEFAULT_WAREHOUSE.parent
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise lake.UnavailableError(f"another demo runs in {folder}") from None
        yield


def _fresh_folder(chosen: Path | None) -> Path:
    """Return the folder of the demo. If it is the default folder, delete Airflow's files and the
    CSV files that an earlier demo left there.
    """
    folder = (chosen or DEFAULT_WAREHOUSE.parent).resolve()
    for made in (folder / "airflow", folder / "incoming"):
        if chosen is None and made.exists():
            _remove(made)
    return folder


def _fresh_warehouse(chosen: Path | None) -> Path:
    """Return an empty folder for the tables; delete only the default warehouse of an earlier demo.
    Raise ``InvalidRequestError`` if a chosen folder is not empty.
    """
    if chosen is None:
        if DEFAULT_WAREHOUSE.exists():
            _remove(DEFAULT_WAREHOUSE)
    elif chosen.exists() and any(chosen.iterdir()):
        raise lake.InvalidRequestError(f"{chosen} is not empty")
    return chosen or DEFAULT_WAREHOUSE


def _remove(warehouse: Path) -> None:
    try:
        shutil.rmtree(warehouse)
    except OSError as error:  # the error names a file only by its last part
        raise lake.UnavailableError(
            f"cannot delete {warehouse}, left by an earlier demo ({error.strerror})"
        ) from None


def _make_table(warehouse: Path) -> lake.Table:
    catalog = lake.open_catalog(str(warehouse))
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("item", "STRING"), ("price", "DECIMAL(10, 2)")]
    return catalog.create_table(TABLE, columns)


def _days() -> dict[int, pa.Table]:
    first = [(1, "apple", "0.50"), (2, "pear", "0.70"), (3, "plum", "0.30")]
    second = [(4, "quince", "2.25"), (5, None, "1.00")]
    return {day: _rows(rows) for day, rows in enumerate((first, second), start=1)}


def _rows(rows: list[tuple[int, str | None, str]]) -> pa.Table:
    ids, items, prices = zip(*rows, strict=True)
    exact = pa.array([Decimal(price) for price in prices], pa.decimal128(10, 2))
    return pa.table({"id": ids, "item": items, "price": exact})


def _run(command: str) -> None:
    """Print a command, which the reader can type as well, and run it."""
    print(f"   $ {command}", flush=True)
    subprocess.run(shlex.split(command), check=True)


def _say(sentence: str) -> None:
    print(f"\n{sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The options of bin/demo; this module needs no installed package."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DemoRequest", "parse_demo"]

DESCRIPTION = """\
Shows a table that the library writes, and then tables that a real Airflow maintains.

In the first part a table is created, written twice, inspected and read back, in a few seconds. Then
Airflow starts on this machine (SQLite, no network but loopback). One DAG ingests the changes of a
shop, compacts and expires, and its asset event starts a second DAG. Airflow stops
when this command ends."""


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """The options of a call of bin/demo."""

    warehouse: Path | None
    folder: Path | None
    quick: bool
    keep: bool
    engine: str


def parse_demo(arguments: Sequence[str]) -> DemoRequest:
    """Return the options on the command line; for help or a usage error, print it and exit."""
    parser = argparse.ArgumentParser(
        prog="bin/demo",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--warehouse",
        type=Path,
        help="run only the first part, with its table in this new or empty directory",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="a new or empty directory for all files of the demo (default: .demo/)",
    )
    parser.add_argument("--quick", action="store_true", help="only the first part, without Airflow")
    parser.add_argument(
        "--keep", action="store_true", help="keep Airflow and its pages running until Ctrl-C"
    )
    parser.add_argument(
        "--engine",
        choices=("spark", "python"),
        default="spark",
        help="the engine that compacts in Airflow (default: spark, as local[2])",
    )
    return DemoRequest(**vars(parser.parse_args(arguments)))

"""``lake package``: what a cluster needs to run the jobs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lakeformat.doctor import DISTRIBUTION
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["register"]

_JOB = """\
import sys

from spark_jobs.__main__ import main

sys.exit(main())
"""
_OF_TASKS = "spark"
"""The extra with what Spark's Python tasks need beside Spark, as pandas."""
_LOG_SETTINGS = "log4j2.properties"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(package)


def package(
    folder: Annotated[Path, typer.Argument(help="Where the files are put.")] = Path("dist"),
    environment: Annotated[
        bool,
        typer.Option("--environment", help="Also pack what our packages need, for --archives."),
    ] = False,
    extras: Annotated[
        list[str] | None,
        typer.Option("--extra", help="Extras that --environment holds, as s3 or jdbc."),
    ] = None,
) -> None:
    """Pack the jobs for a cluster: lake.zip for --py-files, and a script for spark-submit.

    An example: lake package dist --environment --extra s3
    """
    from lakeformat.cli.archive import needed_distributions, write_environment, write_packages

    folder.mkdir(parents=True, exist_ok=True)
    packages = folder / "lake.zip"
    _tell(packages, write_packages(packages))
    (folder / "lake_job.py").write_text(_JOB, encoding="utf-8")
    typer.echo(f"{folder / 'lake_job.py'}: give it to spark-submit, and a job's name behind it")
    settings = _log_settings()
    (folder / _LOG_SETTINGS).write_bytes(settings)
    typer.echo(f"{folder / _LOG_SETTINGS}: a quiet log")
    if environment:
        target = folder / "lake-environment.tar.gz"
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        needed = needed_distributions(DISTRIBUTION, [_OF_TASKS, *(extras or ())])
        _tell(target, write_environment(target, needed, version))
    typer.echo("docs/shipping.md says what to do with them on each kind of cluster")


def _tell(path: Path, files: int) -> None:
    typer.echo(f"{path}: {counted(files, 'file')}, {size(path.stat().st_size)}")


def _log_settings() -> bytes:
    """The settings that lie beside the jobs."""
    spec = find_spec("spark_jobs")
    assert spec is not None, "packed a moment ago"
    [folder, *_] = spec.submodule_search_locations or []
    return (Path(folder) / _LOG_SETTINGS).read_bytes()

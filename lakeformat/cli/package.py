# SPDX-License-Identifier: Apache-2.0
"""``lake package``: packs the files that a cluster needs to run the jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lakeformat.doctor import DISTRIBUTION
from lakeformat.errors import InvalidRequestError
from lakeformat.types.byte_size import size
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted

__all__ = ["register"]

_JOB = """\
import sys

from spark_jobs.__main__ import main

sys.exit(main())
"""
_OF_TASKS = "spark"
"""The extra of this project with the packages that Spark's Python tasks need, such as pandas."""
_LOG_SETTINGS = "log4j2.properties"


def register(app: typer.Typer) -> None:
    """Add ``package`` to the program."""
    app.command()(package)


def package(
    folder: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Directory for the files.")
    ] = Path("dist"),
    environment: Annotated[
        bool,
        typer.Option(
            "--environment", help="Also pack all required packages, for spark-submit --archives."
        ),
    ] = False,
    extras: Annotated[
        list[str] | None,
        typer.Option(
            "--extra",
            metavar="NAME",
            help="With --environment: also pack this extra, such as s3 or jdbc. Repeatable.",
        ),
    ] = None,
) -> None:
    """Pack the jobs for a cluster: lake.zip for --py-files, and a script for spark-submit.

    An example: lake package dist --environment --extra s3
    """
    from lakeformat.cli.archive import needed_distributions, write_environment, write_packages

    _require_extras(extras or (), environment=environment)
    folder.mkdir(parents=True, exist_ok=True)
    packages = folder / "lake.zip"
    _print_written(packages, write_packages(packages))
    (folder / "lake_job.py").write_text(_JOB, encoding="utf-8")
    typer.echo(f"{folder / 'lake_job.py'}: pass it to spark-submit, followed by a job's name")
    settings = _log_settings()
    (folder / _LOG_SETTINGS).write_bytes(settings)
    typer.echo(f"{folder / _LOG_SETTINGS}: log settings that print only errors")
    if environment:
        target = folder / "lake-environment.tar.gz"
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        needed = needed_distributions(DISTRIBUTION, [_OF_TASKS, *(extras or ())])
        _print_written(target, write_environment(target, needed, version))
    typer.echo("next: docs/shipping.md describes how to use them on each kind of cluster")


def _require_extras(extras: Sequence[str], *, environment: bool) -> None:
    """Raise ``InvalidRequestError`` for an extra that this project does not have, and for any extra
    without ``--environment``.
    """
    if extras and not environment:
        raise InvalidRequestError(
            "--extra needs --environment, which packs the extra's packages: add --environment, or "
            "leave out --extra"
        )
    known = metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for extra in extras:
        if extra not in known:
            raise InvalidRequestError(
                f"{DISTRIBUTION} has no extra {extra!r}; it has {', '.join(sorted(known))}"
                f"{closest(extra, known)}"
            )


def _print_written(path: Path, files: int) -> None:
    typer.echo(f"{path}: {counted(files, 'file')}, {size(path.stat().st_size)}")


def _log_settings() -> bytes:
    spec = find_spec("spark_jobs")
    assert spec is not None, "packed a moment ago"
    [folder, *_] = spec.submodule_search_locations or []
    return (Path(folder) / _LOG_SETTINGS).read_bytes()

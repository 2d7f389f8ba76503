# SPDX-License-Identifier: Apache-2.0
"""The program ``lake``: runs a command, and prints an error of the library as one line."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from importlib.metadata import version
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from lakeformat.cli import (
    adopt,
    branches,
    changelog,
    check,
    compact,
    consumers,
    doctor,
    end_batch,
    expire,
    health,
    inspect,
    maintain,
    missing_files,
    names,
    orphans,
    package,
    partition,
    plan,
    publish,
    rescale,
    rollback,
    row_changes,
    rows,
    table_options,
    tags,
    transfer,
    upkeep,
    write,
)
from lakeformat.cli.copyable import LakeCommand, copyable
from lakeformat.cli.panels import arrange
from lakeformat.cli.warehouse import (
    CatalogOptionOption,
    ExternalRootOption,
    FormatOption,
    MetastoreOption,
    UriOption,
    WarehouseOption,
)
from lakeformat.cli.wording import in_words_of_commands
from lakeformat.doctor import DISTRIBUTION
from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.rows.freed_memory import keep_freed_memory
from lakeformat.rows.without_pandas import hide_pandas

__all__ = ["app", "main"]

EXIT_FAILED = 1
EXIT_WRONG_REQUEST = 2
EXIT_DEFECT = 3
EXIT_INTERRUPTED = 130
EXIT_ENDED = 143
DEBUG = "LAKE_DEBUG"

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lake {version(DISTRIBUTION)}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version."),
]


@app.callback()
def lake(
    warehouse: WarehouseOption = None,
    format: FormatOption = None,
    metastore: MetastoreOption = None,
    uri: UriOption = None,
    catalog_option: CatalogOptionOption = None,
    external_root: ExternalRootOption = None,
    version: VersionOption = False,
) -> None:
    """Read, write and maintain tables of Apache Paimon, Apache Iceberg and Amoro's Mixed format."""


inspect.register(app)
health.register(app)
plan.register(app)
check.register(app)
rows.register(app)
write.register(app)
row_changes.register(app)
end_batch.register(app)
maintain.register(app)
compact.register(app)
expire.register(app)
consumers.register(app)
tags.register(app)
branches.register(app)
rollback.register(app)
orphans.register(app)
missing_files.register(app)
partition.register(app)
upkeep.register(app)
publish.register(app)
rescale.register(app)
transfer.register(app)
changelog.register(app)
names.register(app)
adopt.register(app)
table_options.register(app)
doctor.register(app)
package.register(app)
arrange(app)


def main() -> None:
    """Run the command line and exit.

    Exit codes: 0 done, 1 failed, 2 wrong request, 3 a defect of the program, 130 interrupted by
    Ctrl-C, 143 ended by SIGTERM. 4: ``lake maintain`` finished, but an obstacle remains or a table
    of a database was skipped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # started with this stream closed
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal shows escapes for what it cannot encode
            stream.reconfigure(errors="backslashreplace")
    # Commands print these warnings themselves.
    for name in (
        "lakeformat.tables.age_floor",
        "lakeformat.paimon.orphans",
        "lakeformat.paimon.compact.other_compactor",
        "lakeformat.paimon.maintain",
        "lakeformat.iceberg.maintain",
    ):
        logging.getLogger(name).addHandler(logging.NullHandler())
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    hide_pandas()
    keep_freed_memory()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except LakeError as error:
        _print_error(error)
        wrong = isinstance(error, InvalidRequestError)
        sys.exit(EXIT_WRONG_REQUEST if wrong else EXIT_FAILED)
    except BrokenPipeError:  # the reader of the pipe has closed it
        _drop_output()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        _drop_output()
        _print_error(error)
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        _drop_output()
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # a traceback does not help the person who typed the command
        if os.environ.get(DEBUG):
            raise
        _print_error(error, f"this is a defect; run again with {DEBUG}=1 for the traceback")
        sys.exit(EXIT_DEFECT)


def _end(number: int, frame: FrameType | None) -> None:
    """Raise ``SystemExit`` on SIGTERM, so that the command deletes its uncommitted files."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the clean-up has started
    raise SystemExit(EXIT_ENDED)


def _print_error(error: Exception, *more: str) -> None:
    """Print an error, then the texts ``more``, to stderr as one line.

    Line ends in the message of the error become spaces.
    """
    message = str(error)
    if isinstance(error, LakeError):
        message = in_words_of_commands(message, typer.main.get_command(app))
        if LakeCommand.failed is not None:
            message = copyable(LakeCommand.failed, message)
    line = "; ".join((" ".join(f"{type(error).__name__}: {message}".splitlines()), *more))
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)


def _drop_output() -> None:
    """Redirect stdout to /dev/null, so that Python's flush at exit does not fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""``lake``: finds the command, and turns the library's errors into one line and an exit code."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from lakeformat.cli import doctor, inspect
from lakeformat.cli.warehouse import WarehouseOption
from lakeformat.errors import InvalidRequestError, LakeError

__all__ = ["app", "main"]

EXIT_FAILED = 1
EXIT_WRONG_REQUEST = 2

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def lake(warehouse: WarehouseOption = None) -> None:
    """Lake tables in the Apache Paimon format: look at them and look after them."""


inspect.register(app)
doctor.register(app)


def main() -> None:
    """Run the command line; 0 done, 1 failed, 2 the request was wrong."""
    try:
        app()
    except LakeError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"{type(error).__name__}: {error}", markup=False
        )
        wrong = isinstance(error, InvalidRequestError)
        sys.exit(EXIT_WRONG_REQUEST if wrong else EXIT_FAILED)

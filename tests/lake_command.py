"""``lake`` in this process, on the warehouse of a catalog."""

from __future__ import annotations

from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app

__all__ = ["lake_refuses", "lake_says"]


def lake_says(catalog: lake.Catalog, *words: str, code: int = 0, width: int | None = None) -> str:
    """Return the output of a command on a terminal with these columns; check its exit code."""
    environment = {} if width is None else {"COLUMNS": str(width)}
    shown = CliRunner().invoke(app, ["-w", catalog.location, *words], env=environment)
    assert shown.exit_code == code, shown.output or str(shown.exception)
    return shown.output


def lake_refuses(
    catalog: lake.Catalog, *words: str, error: type[lake.LakeError] = lake.InvalidRequestError
) -> str:
    """The sentence a command is refused with."""
    shown = CliRunner().invoke(app, ["-w", catalog.location, *words])
    assert isinstance(shown.exception, error), shown.output
    return str(shown.exception)

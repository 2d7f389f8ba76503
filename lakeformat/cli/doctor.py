"""``lake doctor``: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import json

import typer
from rich.text import Text

from lakeformat.cli.output import AsJson, print_grid
from lakeformat.cli.warehouse import WarehouseOption
from lakeformat.doctor import Finding, Status, diagnose

__all__ = ["register"]

STYLE = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def register(app: typer.Typer) -> None:
    """Add ``doctor`` to the program."""
    app.command()(doctor)


def doctor(
    context: typer.Context, warehouse: WarehouseOption = None, as_json: AsJson = False
) -> None:
    """Check versions, Java, Spark and write access; exit code 1 when something fails."""
    findings = diagnose(warehouse or context.find_root().params.get("warehouse"))
    if as_json:
        typer.echo(json.dumps([finding.to_dict() for finding in findings]))
    else:
        show(findings)
    raise typer.Exit(code=int(any(finding.status is Status.FAIL for finding in findings)))


def show(findings: list[Finding]) -> None:
    """Print the findings as a table and the verdict as one line."""
    print_grid(
        dict.fromkeys(("", "what", "found", "what to do"), "left"),
        [
            (
                Text(finding.status.value, style=STYLE[finding.status]),
                # Text, not markup: "[spark]" is a name here.
                *map(Text, (finding.name, finding.found, finding.advice)),
            )
            for finding in findings
        ],
    )
    failed = sum(finding.status is Status.FAIL for finding in findings)
    typer.echo(f"\n{failed} to repair" if failed else "\nready")

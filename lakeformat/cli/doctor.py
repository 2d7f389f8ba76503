# SPDX-License-Identifier: Apache-2.0
"""``lake doctor``: checks this machine, and prints the next step for each problem."""

from __future__ import annotations

import typer

from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_warehouse
from lakeformat.doctor import Finding, Status, diagnose

__all__ = ["register"]

STYLE: dict[str, str] = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def register(app: typer.Typer) -> None:
    """Add ``doctor`` to the program."""
    app.command()(doctor)


def doctor(
    context: typer.Context, warehouse: WarehouseOption = None, as_json: AsJson = False
) -> None:
    """Check versions, Java, Spark and write access. The exit code is 1 if a check fails."""
    findings = diagnose(named_warehouse(context))
    if as_json:
        print_json(finding.to_dict() for finding in findings)
    else:
        show(findings)
    raise typer.Exit(code=int(any(finding.status is Status.FAIL for finding in findings)))


def show(findings: list[Finding]) -> None:
    """Print the findings as a table, then the number of failed checks, or "ready"."""
    print_grid(
        [
            GridColumn("", [str(finding.status) for finding in findings], styles=STYLE),
            GridColumn("check", [finding.name for finding in findings]),
            GridColumn("found", [finding.found for finding in findings]),
            GridColumn("what to do", [finding.advice for finding in findings]),
        ]
    )
    failed = sum(finding.status is Status.FAIL for finding in findings)
    typer.echo(f"\n{failed} to repair" if failed else "\nready")

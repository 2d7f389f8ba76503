# SPDX-License-Identifier: Apache-2.0
"""``lake adopt`` and ``lake detach``: an Iceberg table becomes a Mixed table, and back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

import lakeformat as lake
from lakeformat.cli.arguments import DryRun, NameInCatalogArgument, listed
from lakeformat.cli.confirm import Yes, is_wanted
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, existing_catalog_of_any_format
from lakeformat.errors import InvalidRequestError

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg import IcebergCatalog

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(adopt)
    app.command()(detach)


def adopt(
    context: typer.Context,
    table: NameInCatalogArgument,
    primary_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="The columns of the key. Default: the identifier fields of the table.",
        ),
    ] = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Make an Iceberg table a Mixed table; only metadata changes.

    The keys of all rows are read first, and must be unique in each partition. Stop other writers
    until the command ends. `lake detach` undoes the change.

    An example: lake adopt shop.orders --primary-key id --dry-run
    """
    key = listed(primary_key) or None
    report = _iceberg_catalog(context, "adopt").adopt_table(table, primary_key=key, dry_run=dry_run)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.sentence)


def detach(
    context: typer.Context,
    table: NameInCatalogArgument,
    merge: Annotated[
        bool, typer.Option("--merge", help="First merge all changes, by a full compaction.")
    ] = False,
    abandon_changes: Annotated[
        bool,
        typer.Option(
            "--abandon-changes",
            help="If the change store is missing: keep the rows of the base store, and lose "
            "changes that were not merged.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a Mixed table an Iceberg table with the same rows. The change store is deleted, after
    confirmation.

    All changes must be merged. The table must have no open batch and no consumer.

    An example: lake detach shop.orders --merge --yes
    """
    catalog = _iceberg_catalog(context, "detach")
    what = "unmerged changes" if abandon_changes else "change store"
    detach_table = partial(
        catalog.detach_table, table, merge=merge, abandon_changes=abandon_changes
    )
    if abandon_changes and not yes:
        detach_table(dry_run=True)  # refuses if the change store exists: then nothing is asked
    if not (dry_run or is_wanted(f"the {what} of table {table}", yes=yes)):
        return
    report = detach_table(dry_run=dry_run)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.sentence)


def _iceberg_catalog(context: typer.Context, command: str) -> IcebergCatalog:
    catalog = existing_catalog_of_any_format(context)
    if isinstance(catalog, lake.Catalog):
        raise InvalidRequestError(
            f"`lake {command}` changes tables in a catalog of Iceberg tables: write `lake --format "
            f"iceberg {command} …`"
        )
    return catalog

# SPDX-License-Identifier: Apache-2.0
"""``lake branch``: separate histories over the same data files."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.cli.arguments import DryRun, MainTableArgument
from lakeformat.cli.confirm import Yes
from lakeformat.cli.deletions import delete_and_show
from lakeformat.cli.output import AsJson, Shown, print_json, print_report, print_rows, shown_time
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format

__all__ = ["register"]

BranchArgument = Annotated[str, typer.Argument(metavar="BRANCH", help="The name of the branch.")]

_LISTED = (
    Shown("branch_name", "branch"),
    Shown("snapshot_count", "snapshots"),
    Shown("first_snapshot_id", "first"),
    Shown("last_snapshot_id", "last"),
    Shown("tag_count", "tags"),
    Shown("create_time", "created", shown_time),
)

_branch = typer.Typer(
    no_args_is_help=True, help="Branches: separate histories over the same data files."
)


def register(app: typer.Typer) -> None:
    """Add ``branch`` and its commands to the program."""
    app.add_typer(_branch, name="branch")


@_branch.command("list")
def list_branches(
    context: typer.Context,
    table: MainTableArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """List the branches of a table with their snapshots and tags; main is not listed. Not for Mixed
    tables.

    An example: lake branch list shop.orders
    """
    rows = [each.to_dict() for each in named_table_of_any_format(context, table).branches.list()]
    if as_json:
        print_json(rows)
        return
    values = {column.key: [row.get(column.key) for row in rows] for column in _LISTED}
    print_rows(_LISTED, values, empty="the table has no branch")


@_branch.command("create")
def create_branch(
    context: typer.Context,
    table: MainTableArgument,
    branch: BranchArgument,
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Start from the snapshot of this tag.")
    ] = None,
    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Start from this snapshot of main; for an Iceberg table, give the snapshot's id. "
            "Default without --tag: a branch without rows; for an Iceberg table, the newest "
            "snapshot.",
        ),
    ] = None,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Do nothing if the branch exists.")
    ] = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a branch. Read and write it as 'database.table$branch_NAME'. Not for Mixed
    tables.

    Default: a branch of a Paimon table has the columns of main and no rows; a branch of an Iceberg
    table starts from the newest snapshot.

    An example: lake branch create shop.orders dev --tag v1
    """
    branches = named_table_of_any_format(context, table).branches
    report = branches.create(branch, tag=tag, snapshot=snapshot, exist_ok=exist_ok, dry_run=dry_run)
    print_report(report, as_json=as_json)


@_branch.command("rename")
def rename_branch(
    context: typer.Context,
    table: MainTableArgument,
    branch: BranchArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Rename a branch. Not for Mixed tables.

    An example: lake branch rename shop.orders dev staging
    """
    branches = named_table_of_any_format(context, table).branches
    print_report(branches.rename(branch, new_name, dry_run=dry_run), as_json=as_json)


@_branch.command("fast-forward")
def fast_forward(
    context: typer.Context,
    table: MainTableArgument,
    branch: BranchArgument,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Move main to the newest snapshot of a branch. The branch must have all commits of main.
    Not for Mixed tables.

    An example: lake branch fast-forward shop.orders dev --dry-run
    """
    report = named_table_of_any_format(context, table).branches.fast_forward(
        branch, dry_run=dry_run
    )
    print_report(report, as_json=as_json)


@_branch.command("delete")
def delete_branch(
    context: typer.Context,
    table: MainTableArgument,
    branch: BranchArgument,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete a branch. For a Paimon table, also delete the files that only the branch references,
    after confirmation. Not for Mixed tables.

    Files that main or another branch references are kept. To finish an interrupted deletion, run
    the command again. For an Iceberg table, the next expiry deletes the files that only the branch
    referenced.

    An example: lake branch delete shop.orders dev --dry-run
    """
    branches = named_table_of_any_format(context, table).branches
    delete_and_show(
        lambda **how: branches.delete(branch, **how),
        f"branch {branch!r} of {table}",
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )

"""``lake branch``: other histories over the same data files."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.confirm import Yes
from lakeformat.cli.deletions import delete_and_show
from lakeformat.cli.output import AsJson, Shown, print_json, print_report, print_rows, shown_time
from lakeformat.cli.tags import DryRunOption
from lakeformat.cli.warehouse import WarehouseOption, named_table

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
    no_args_is_help=True, help="Branches: other histories over the same data files."
)


def register(app: typer.Typer) -> None:
    """Add ``branch`` and its commands to the program."""
    app.add_typer(_branch, name="branch")


@_branch.command("list")
def list_branches(
    context: typer.Context,
    table: TableArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the branches of a table and how much each has; main is not among them.

    An example: lake branch list shop.orders
    """
    rows = [each.to_dict() for each in named_table(context, table).branches.list()]
    if as_json:
        print_json(rows)
        return
    values = {column.key: [row[column.key] for row in rows] for column in _LISTED}
    print_rows(_LISTED, values, empty="the table has no branch")


@_branch.command("create")
def create_branch(
    context: typer.Context,
    table: TableArgument,
    branch: BranchArgument,
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Begin at the snapshot of a tag.")
    ] = None,
    snapshot: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Begin at a snapshot of main.")
    ] = None,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Leave a branch of the name as it is.")
    ] = False,
    dry_run: DryRunOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a branch, which has the columns of main and no rows if nothing else is said.

    It is read and written as database.table$branch_NAME.
    An example: lake branch create shop.orders dev --tag v1
    """
    branches = named_table(context, table).branches
    report = branches.create(branch, tag=tag, snapshot=snapshot, exist_ok=exist_ok, dry_run=dry_run)
    print_report(report, as_json=as_json)


@_branch.command("rename")
def rename_branch(
    context: typer.Context,
    table: TableArgument,
    branch: BranchArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="How it shall be called.")],
    dry_run: DryRunOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a branch another name.

    An example: lake branch rename shop.orders dev staging
    """
    branches = named_table(context, table).branches
    print_report(branches.rename(branch, new_name, dry_run=dry_run), as_json=as_json)


@_branch.command("fast-forward")
def fast_forward(
    context: typer.Context,
    table: TableArgument,
    branch: BranchArgument,
    dry_run: DryRunOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Let main have the snapshots of a branch, if main has not gone on since it began.

    An example: lake branch fast-forward shop.orders dev --dry-run
    """
    report = named_table(context, table).branches.fast_forward(branch, dry_run=dry_run)
    print_report(report, as_json=as_json)


@_branch.command("delete")
def delete_branch(
    context: typer.Context,
    table: TableArgument,
    branch: BranchArgument,
    dry_run: DryRunOption = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete a branch with the files that only it leads to; asks first if there are any.

    What main or another branch needs stays. A deletion that was interrupted is finished by
    calling it again. An example: lake branch delete shop.orders dev --dry-run
    """
    branches = named_table(context, table).branches
    delete_and_show(
        lambda **how: branches.delete(branch, **how),
        f"branch {branch!r} of {table}",
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )

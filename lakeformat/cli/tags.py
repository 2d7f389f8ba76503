# SPDX-License-Identifier: Apache-2.0
"""``lake tag``: named snapshots, which are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.cli.arguments import DryRun, TableArgument, time_of
from lakeformat.cli.confirm import Yes
from lakeformat.cli.deletions import delete_and_show
from lakeformat.cli.output import AsJson, Shown, print_json, print_report, print_rows, shown_time
from lakeformat.cli.warehouse import WarehouseOption, named_table, named_table_of_any_format

__all__ = ["register"]

TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="The name of the tag.")]
TagsArgument = Annotated[list[str], typer.Argument(metavar="TAG", help="The names of tags.")]
SnapshotOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="The number of the snapshot; in an Iceberg table, its id. Default: the newest.",
    ),
]
FromTagOption = Annotated[
    str | None,
    typer.Option("--tag", "--from-tag", metavar="TAG", help="Use the snapshot of this other tag."),
]
AtOrAfterOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Use the first snapshot at or after '2024-01-31 10:00', in UTC."
    ),
]
WatermarkOption = Annotated[
    int | None,
    typer.Option(
        metavar="MILLIS",
        help="Use the first snapshot whose watermark, in epoch milliseconds, has reached this. "
        "Only for Paimon tables.",
    ),
]
RetainOption = Annotated[
    str | None,
    typer.Option(
        metavar="AGE",
        help="Lifetime of the tag, such as '7 d', after which `lake tag expire` deletes it. In an "
        "Iceberg table the lifetime begins with the commit of the snapshot. Default: the table "
        "option tag.default-time-retained, or history.expire.max-ref-age-ms in an Iceberg table; "
        "if it is not set, the tag does not expire.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Paimon tables: continue even if the tag is in use. The expiry of other engines may "
        "then delete files of a branch, or files that a rollback restored.",
    ),
]

_LISTED = (
    Shown("tag_name", "tag"),
    Shown("snapshot_id", "snapshot"),
    Shown("record_count", "rows"),
    Shown("commit_time", "committed", shown_time),
    Shown("create_time", "created", shown_time),
    Shown("expire_time", "expires", shown_time),
)

_tag = typer.Typer(no_args_is_help=True, help="Tags: named snapshots, which are kept.")


def register(app: typer.Typer) -> None:
    """Add ``tag`` and its commands to the program."""
    app.add_typer(_tag, name="tag")


@_tag.command("list")
def list_tags(
    context: typer.Context,
    table: TableArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """List the tags of a table, and when each expires. Not for Mixed tables.

    An example: lake tag list shop.orders
    """
    rows = [each.to_dict() for each in named_table_of_any_format(context, table).tags.list()]
    if as_json:
        print_json(rows)
        return
    values = {column.key: [row.get(column.key) for row in rows] for column in _LISTED}
    print_rows(_LISTED, values, empty="the table has no tag")


@_tag.command("create")
def create_tag(
    context: typer.Context,
    table: TableArgument,
    tag: TagArgument,
    snapshot: SnapshotOption = None,
    from_tag: FromTagOption = None,
    at_or_after: AtOrAfterOption = None,
    watermark: WatermarkOption = None,
    retain: RetainOption = None,
    exist_ok: Annotated[
        bool,
        typer.Option(
            "--exist-ok", help="Do nothing if the tag exists, even if it names another snapshot."
        ),
    ] = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a tag: a name for a snapshot, which is then kept. Not for Mixed tables.

    An example: lake tag create shop.orders before-migration --retain '30 d'
    """
    report = named_table_of_any_format(context, table).tags.create(
        tag,
        snapshot=snapshot,
        tag=from_tag,
        at_or_after=time_of(at_or_after),
        watermark=watermark,
        retain=retain,
        exist_ok=exist_ok,
        dry_run=dry_run,
    )
    print_report(report, as_json=as_json)


@_tag.command("replace")
def replace_tag(
    context: typer.Context,
    table: TableArgument,
    tag: TagArgument,
    snapshot: SnapshotOption = None,
    from_tag: FromTagOption = None,
    retain: RetainOption = None,
    force: ForceOption = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Move an existing tag to another snapshot. Not for Mixed tables.

    An example: lake tag replace shop.orders latest-good --snapshot 42
    """
    tags = named_table_of_any_format(context, table).tags
    report = tags.replace(
        tag, snapshot=snapshot, tag=from_tag, retain=retain, force=force, dry_run=dry_run
    )
    print_report(report, as_json=as_json)


@_tag.command("rename")
def rename_tag(
    context: typer.Context,
    table: TableArgument,
    tag: TagArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Rename a tag. Not for Mixed tables.

    An example: lake tag rename shop.orders v1 version-1
    """
    tags = named_table_of_any_format(context, table).tags
    print_report(tags.rename(tag, new_name, dry_run=dry_run), as_json=as_json)


@_tag.command("delete")
def delete_tags(
    context: typer.Context,
    table: TableArgument,
    tags: TagsArgument,
    force: ForceOption = False,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Ignore tags that do not exist.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete tags. For a Paimon table, also delete the files that only these tags reference. If
    there are such files, the command asks first. Not for Mixed tables.

    Files that a snapshot, another tag or a branch references are kept. If a deletion is
    interrupted, the next deletion finishes it. For an Iceberg table, the next expiry deletes the
    files that only these tags referenced.

    An example: lake tag delete shop.orders v1 v2 --dry-run
    """
    found, names = named_table_of_any_format(context, table).tags, ", ".join(map(repr, tags))
    delete_and_show(
        lambda **how: found.delete(*tags, force=force, missing_ok=missing_ok, **how),
        f"{'tag' if len(tags) == 1 else 'tags'} {names} of {table}",
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


@_tag.command("expire")
def expire_tags(
    context: typer.Context,
    table: TableArgument,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|AGE",
            help="Also delete tags created before '2024-01-31 10:00', in UTC, or more than '7 d' "
            "ago; in an Iceberg table, tags of snapshots committed before that time.",
        ),
    ] = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the tags whose lifetime is over. Not for Mixed tables.

    An example: lake tag expire shop.orders --dry-run
    """
    tags = named_table_of_any_format(context, table).tags
    delete_and_show(
        lambda **how: tags.expire(older_than=older_than, **how),
        f"the expired tags of {table}",
        dry_run=dry_run,
        yes=True,  # their lifetime was set when they were created
        as_json=as_json,
    )


@_tag.command("create-due")
def create_due_tags(
    context: typer.Context,
    table: TableArgument,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create the tags that the table's option 'tag.automatic-creation' requires by now. Only for
    Paimon tables.

    Run the command on a schedule; it creates no tag twice.

    An example: lake tag create-due shop.orders
    """
    report = named_table(context, table).tags.create_due(dry_run=dry_run)
    print_report(report, as_json=as_json)

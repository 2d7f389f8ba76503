"""Writes the page of the command line from the help texts of `lake`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

import typer

from lakeformat.cli.app import app
from lakeformat.cli.arguments import DryRun, MainTableArgument, TableArgument
from lakeformat.cli.many_tables import NameArgument
from lakeformat.cli.metadata_commands import METADATA_COMMANDS
from lakeformat.cli.output import AsJson
from lakeformat.cli.warehouse import WarehouseOption

__all__ = ["command_line_page"]

_EXPLAINED_ABOVE = {
    each.__metadata__[0].help
    for each in (TableArgument, MainTableArgument, NameArgument, WarehouseOption, AsJson, DryRun)
}
"""The texts of parameters that the introduction describes for all commands."""
_IN_ITS_NAME = re.compile(r"The (new )?name( of the \w+)?\.")
"""Matches a help text that only repeats the argument's name, such as "The name of the tag."."""


def command_line_page(generated: str) -> str:
    """Return the page with the help of `lake` and of each command."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    context = typer.Context(group, info_name="lake")
    lines = ["# The command line", "", generated, "", _first_paragraph(group.help)]
    lines += [
        "`lake COMMAND --help` has more details and examples.",
        "",
        "A command or option that a table's format lacks is refused with an error.",
        "",
        "The lists of parameters below do not repeat these:",
        "",
        "- `TABLE`: `database.table`, a branch as `'database.table$branch_dev'`, or the path of",
        "  the table's directory, with at least one slash, such as `./orders` (then without",
        "  `--format`, `--metastore` and `--uri`)",
        "- `TABLE|DATABASE`: a `TABLE`, or a database, for all its tables",
        "- `AGE`: a number with a unit (`s`, `min`, `h`, `d` or `w`), such as `'7 d'`",
        "- `TIME`: such as `'2024-01-31 10:00'`, in UTC unless it has a time zone",
        "- `POSITION`: a snapshot as its branch and number (in an Iceberg table its sequence",
        "  number), such as `main/8`. For a Paimon table the number alone is enough. A position",
        "  of a [Mixed table](../mixed-reading.md#positions), such as `main/8.11`, names the state",
        "  of both stores",
        "- `[--dry-run]`: only show what would be done",
        "- `--json`, after most commands: print one JSON array, for programs",
        "- `-w` or `--warehouse`, also after most commands: see the next table",
        "",
        "These options stand before the command, as in `lake --format iceberg tables`:",
    ]
    lines += ["", *_parameters(group, context)]
    lines += _command_lines(group, context)
    lines += [
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | failed; or a problem was found by `check`, `doctor`, `publish --check`, or by "
        "`missing-files` and `missing-manifests` without `--remove` |",
        "| 2 | the command or an option is wrong, or does not apply to this table |",
        "| 3 | a defect of this program |",
        "| 4 | only `maintain`: a problem remains, or a table of a database was skipped |",
        "| 130 | interrupted by Ctrl-C |",
        "| 143 | ended by SIGTERM |",
    ]
    return "\n".join(lines) + "\n"


def _command_lines(group: typer.core.TyperGroup, context: typer.Context) -> Iterator[str]:
    """Yield the lines about each command of a group and of its subgroups."""
    of_metadata = {each.name for each in METADATA_COMMANDS} if context.parent is None else set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = typer.Context(command, info_name=name, parent=context)
        if isinstance(command, typer.core.TyperGroup):
            yield from _command_lines(command, inner)
        elif name == METADATA_COMMANDS[0].name:
            yield from _metadata_commands()
        elif name not in of_metadata:
            usage = " ".join((inner.command_path, *_shown_above(command, inner)))
            yield from ("", f"## {_code_in_cell(usage)}")
            yield from ("", _first_paragraph(command.help))
            if parameters := _parameters(command, inner):
                yield from ("", *parameters)


def _metadata_commands() -> Iterator[str]:
    """Yield the lines about the commands that print system tables, which have the same options."""
    yield from (
        "",
        "## Metadata of a table",
        "",
        "- `--limit N` shows only the last N rows.",
        "- `--snapshot NUMBER` (in an Iceberg or Mixed table its id) and `--tag TAG` choose a",
        "  snapshot. Default: the newest.",
        "- Of these commands a Mixed table takes only `snapshots`, `options` and `files`, the last",
        "  one without `--tag`. Its stores `'database.table$base'` and `'database.table$change'`",
        "  take every command below, except those that are only for Paimon tables.",
        "",
        "| command | prints | options |",
        "|---|---|---|",
    )
    for each in METADATA_COMMANDS:
        options = ("--limit", *(("--snapshot", "--tag") if each.of_snapshot else ()))
        names = ", ".join(f"`{option}`" for option in options)
        yield f"| `lake {each.name} TABLE` | {each.meaning} | {names} |"


def _shown_above(command: Any, context: typer.Context) -> Iterator[str]:
    """Yield the parameters in the heading of a command, such as ``FILE...`` or ``[--dry-run]``."""
    for each in command.get_params(context):
        if each.param_type_name == "argument":
            name = f"{each.metavar}..." if each.nargs == -1 else each.metavar
            yield name if each.required else f"[{name}]"
        elif each.help == DryRun.__metadata__[0].help:
            yield "[--dry-run]"


def _parameters(command: Any, context: typer.Context) -> list[str]:
    rows = []
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is None or "--help" in each.opts:
            continue
        if context.parent is not None and each.help in _EXPLAINED_ABOVE:
            continue
        if each.param_type_name == "argument" and _IN_ITS_NAME.fullmatch(each.help):
            continue
        usage, text = (" ".join(part.split()) for part in record)
        if each.param_type_name == "argument":
            usage, text = each.metavar, text.removesuffix(" [required]")
        text = re.sub(r" \[x>=\d\]$", "", text)
        rows.append(f"| {_code_in_cell(usage)} | {text} |")
    return ["| parameter | meaning |", "|---|---|", *rows] if rows else []


def _code_in_cell(text: str) -> str:
    """Return ``text`` as code for a cell of a table. If it has a pipe, the code is HTML, because a
    pipe in backticks would end the cell on some sites.
    """
    if "|" not in text:
        return f"`{text}`"
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())

"""Writes the reference pages that repeat what code declares; a test compares them.

python docs/generate.py          rewrite them
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from lakeformat.catalog.options import declared_catalog_options
from lakeformat.cli.app import app
from lakeformat.paimon.options import declared_options
from lakeformat.paimon.options.foreign import (
    FOREIGN_OPTIONS,
    FOREIGN_PATTERNS,
    MEANING_PREFIXES,
    ForeignClass,
    ForeignOption,
)
from lakeformat.paimon.options.foreign.meaning import UNKNOWN_MEANING
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.options.option import Group, Option
from spark_jobs.frames.procedures import PROCEDURES

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # for the tests, which no package installs

from docs.job_pages import jobs_page  # noqa: E402 - found by the line above
from docs.licences_page import licences_page  # noqa: E402 - the same
from tests.crash import fault_matrix  # noqa: E402 - the same

GENERATED = "<!-- Written by docs/generate.py: change the code, then run it. -->"


def pages() -> dict[str, str]:
    """Every generated page by its path below docs."""
    return {
        "reference/catalog-options.md": catalog_options_page(),
        "reference/options.md": options_page(),
        "reference/command-line.md": command_line_page(),
        "reference/procedures.md": procedures_page(),
        "fault-matrix.md": fault_matrix_page(),
        "jobs.md": jobs_page(GENERATED),
        "licences.md": licences_page(GENERATED),
    }


def catalog_options_page() -> str:
    """All options of catalogs."""
    lines = ["# Catalog options", "", GENERATED, ""]
    lines += [
        "Options are given to `open_catalog(..., options={...})` or `lake --catalog-option`. One",
        "that is not listed here is refused by name. All but the first three belong to the jdbc",
        "metastore alone. Besides them there are `jdbc.<property>` for the connection",
        "(`jdbc.user`, `jdbc.password` and so on), `table-default.<option>`, which new tables get",
        "where they do not say otherwise, and the options of the storage, such as `s3.endpoint`,",
        "which are in [storage](../storage.md).",
        "",
        "| option | takes | default | meaning |",
        "|---|---|---|---|",
    ]
    options = sorted(
        declared_catalog_options(),
        key=lambda o: (o.key not in ("metastore", "case-sensitive", "external-roots"), o.key),
    )
    lines += [
        f"| `{o.key}` | {o.kind.name} | {f'`{o.default}`' if o.default else ''} | {o.description} |"
        for o in options
    ]
    return "\n".join(lines) + "\n"


def procedures_page() -> str:
    """What can be called by the names of Paimon's procedures."""
    lines = ["# Procedures by call", "", GENERATED, ""]
    lines += [
        "`spark_jobs.call(spark, 'sys.compact', table='shop.orders')` does what `CALL` does in",
        "Paimon's SQL, and returns the report. Names of procedures and arguments are Paimon's; an",
        "argument that is not listed is refused. Partitions are `'dt=1,h=2;dt=3'`, times are texts",
        "in UTC or epoch milliseconds. `sys.compact` works in Spark's tasks; with `None` in place",
        "of the session, and a `warehouse=`, in this process, as all others do. Like Paimon's,",
        "those that delete do so at once, and `rollback` takes newer snapshots out of history.",
        "What has no line here is in [the list of all procedures](../procedures.md) with the",
        "command for it, or the reason why there is none.",
        "",
        "| procedure | arguments, those in bold needed | what it does |",
        "|---|---|---|",
    ]
    for procedure in PROCEDURES.values():
        said = [f"**`{n}`**" if n in procedure.needed else f"`{n}`" for n in procedure.arguments]
        lines.append(f"| `{procedure.name}` | {', '.join(said)} | {procedure.meaning} |")
    return "\n".join(lines) + "\n"


def options_page() -> str:
    """All table options, by why one would set them."""
    lines = ["# Table options", "", GENERATED, ""]
    lines += [
        "Options are given to `create_table(..., options={...})` as text and kept in the table's",
        "schema. A key that is not listed here is kept, too. One that differs from a listed key by",
        "few letters is refused, with the key that was meant. A table of another engine may have",
        "any key; [the last three parts](#ignored-for-other-engines) say which of them count here.",
    ]
    for group in Group:
        lines += ["", f"## {group.capitalize()}", ""]
        lines += ["| option | takes | default | meaning |", "|---|---|---|---|"]
        lines += [_option_row(option) for option in declared_options() if option.group is group]
    return "\n".join([*lines, *_theirs(), *_layout(), *_meaning()]) + "\n"


def _theirs() -> list[str]:
    return [
        *("", "## Ignored, for other engines", ""),
        "These concern the jobs of other engines alone. They decide neither which rows a table has",
        "nor which bytes hold them, and refuse nothing. A key that is not on this page is treated",
        "the same, and `health` names it in a note.",
        *("", "| option | what it says |", "|---|---|"),
        *_foreign_rows(ForeignClass.THEIRS),
    ]


def _layout() -> list[str]:
    return [
        *("", "## Ignored, for files of another layout", ""),
        "These shape files; the rows are the same with and without. Files written here follow the",
        "options above instead, and `health` names these in a note.",
        *("", "| option | what it says |", "|---|---|"),
        *_foreign_rows(ForeignClass.LAYOUT),
    ]


def _meaning() -> list[str]:
    prefixes = ", ".join(f"`{prefix}`" for prefix in MEANING_PREFIXES)
    return [
        *("", "## Refused, operation by operation", ""),
        "These decide about rows or promise something, and this version does not carry them out.",
        "The operations of the last column are refused by the name of the option, all others work.",
        f"An unlisted key that begins with {prefixes}",
        "is treated like the last line. `create_table` and `alter_table` do not set any of these.",
        *("", "| option | what it does | refuses nothing at | refuses |", "|---|---|---|---|"),
        *(
            f"| `{key}` | {option.says} | {_values(option)} | {_refused(option)} |"
            for key, option in sorted(FOREIGN_OPTIONS.items())
            if option.kind is ForeignClass.MEANING
        ),
        f"| any other | {UNKNOWN_MEANING.says} | {_values(UNKNOWN_MEANING)} "
        f"| {_refused(UNKNOWN_MEANING)} |",
    ]


def _foreign_rows(kind: ForeignClass) -> list[str]:
    found = sorted({**FOREIGN_OPTIONS, **FOREIGN_PATTERNS}.items())
    return [f"| `{key}` | {option.says} |" for key, option in found if option.kind is kind]


def _values(option: ForeignOption) -> str:
    return ", ".join(f"`{value}`" for value in option.harmless if value)


def _refused(option: ForeignOption) -> str:
    where = f"; only of {option.only}" if option.only else ""
    return ", ".join(each for each in Operation if each in option.refuses) + where


def _option_row(option: Option[object]) -> str:
    return f"| `{option.key}` | {option.kind.name} | `{option.default}` | {option.description} |"


def command_line_page() -> str:
    """The help of `lake` and of each command."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    context = typer.Context(group, info_name="lake")
    lines = ["# The command line", "", GENERATED, "", _first_paragraph(group.help)]
    lines += ["", *_parameters(group, context)]
    lines += _command_lines(group, context)
    codes = "0 done, 1 failed, 2 the request was wrong, 3 a defect of this program, 130 interrupted"
    lines += ["", f"Exit codes: {codes};"]
    lines += ["4 of `lake maintain` alone: something stands in the way of a healthy table."]
    return "\n".join(lines) + "\n"


def _command_lines(group: typer.core.TyperGroup, context: typer.Context) -> list[str]:
    """Each command of a group, and those of the groups in it."""
    lines = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = typer.Context(command, info_name=name, parent=context)
        if isinstance(command, typer.core.TyperGroup):
            lines += _command_lines(command, inner)
            continue
        lines += ["", f"## `{inner.command_path} {' '.join(command.collect_usage_pieces(inner))}`"]
        lines += ["", _first_paragraph(command.help), "", *_parameters(command, inner)]
    return lines


def fault_matrix_page() -> str:
    """What goes wrong, what must be true then, and which tests show it."""
    lines = ["# What a table survives", "", GENERATED, ""]
    lines += [
        "Processes die, disks fill up, answers get lost and writers meet. Each line is one fault,",
        "what must be true afterwards, and the tests that show it; or what it waits for.",
        "",
    ]
    return "\n".join(lines) + "\n" + fault_matrix.page()


def _parameters(command: Any, context: typer.Context) -> list[str]:
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            usage, help_text = (" ".join(part.split()) for part in record)
            rows.append(f"| `{usage}` | {help_text} |")
    return ["| parameter | meaning |", "|---|---|", *rows]


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def main() -> None:
    """Write every page."""
    for name, content in pages().items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(content)


if __name__ == "__main__":
    main()

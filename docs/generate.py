"""Writes the reference pages from declarations in the code; a test compares pages and code.

python docs/generate.py          rewrite the pages
"""

from __future__ import annotations

import sys
from pathlib import Path

from lakeformat.catalog.iceberg.options import ICEBERG_OPTIONS, METASTORES
from lakeformat.catalog.options import declared_catalog_options
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
from lakeformat.paimon.options.option import ColumnOption, Group, Option
from lakeformat.paimon.schema_changes.option_rules import is_fixed
from spark_jobs.frames.procedures import PROCEDURES
from spark_jobs.source.options import OPTIONS, Use

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # for the tests, which no package installs

from docs.api_pages import api_pages  # noqa: E402 - found by the line above
from docs.command_page import command_line_page  # noqa: E402 - the same
from docs.job_pages import jobs_page  # noqa: E402 - the same
from docs.licences_page import licences_page  # noqa: E402 - the same
from docs.provider_manifest import provider_manifest  # noqa: E402 - the same
from tests.crash import fault_matrix  # noqa: E402 - the same

GENERATED = "<!-- Written by docs/generate.py: change the code, then run it. -->"


def pages() -> dict[str, str]:
    """Return the text of every generated file by its path from docs/."""
    return {
        "reference/catalog-options.md": catalog_options_page(),
        "reference/options.md": options_page(),
        "reference/options-of-other-engines.md": other_engines_page(),
        "reference/command-line.md": command_line_page(GENERATED),
        "reference/procedures.md": procedures_page(),
        "reference/spark-options.md": spark_options_page(),
        "fault-matrix.md": fault_matrix_page(),
        "jobs.md": jobs_page(GENERATED),
        "licences.md": licences_page(GENERATED),
        **api_pages(GENERATED),
        "../provider.yaml": provider_manifest(),
    }


def catalog_options_page() -> str:
    """Return the page of all catalog options."""
    lines = ["# Catalog options", "", GENERATED, ""]
    lines += [
        "Give options to `open_catalog(..., options={...})`, or before the command of `lake`, as",
        "in `lake --catalog-option KEY=VALUE tables`. Any other option than the following is",
        "refused. The first three options of the table below apply to each catalog of Paimon",
        "tables; all further ones need the jdbc metastore. Besides the table, a catalog takes:",
        "",
        "- `format`: `paimon` (the default) or `iceberg`, which has [options of its",
        "  own](#catalogs-of-iceberg-tables)",
        "- `jdbc.<property>`, with the jdbc metastore, for the connection (`jdbc.user`,",
        "  `jdbc.password` and so on)",
        "- `table-default.<option>`: the default of a table option for new tables",
        "- `metadata.iceberg.<key>`: address and login of a catalog in which tables are",
        "  [published](../publish.md)",
        "- the options of the [storage](../storage.md), such as `s3.endpoint`",
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
    lines += [
        "",
        "## Catalogs of Iceberg tables",
        "",
        "With the format `iceberg`, the option `metastore` is `path` (the default), `sql`, `rest`,",
        "`hive` or `glue`. [Iceberg catalogs](../iceberg-catalogs.md) has examples. Also accepted:",
        "",
        "- `uri`: the address of the metastore `sql`, `rest` or `hive`, which need it",
        "- `jdbc.<property>` for the connection of the sql metastore (`jdbc.user` and so on)",
        "- `header.<name>`: a header of each request of the rest metastore",
        "- the options of the [storage](../storage.md)",
        "",
        "| option | metastore | meaning |",
        "|---|---|---|",
    ]
    for each in ICEBERG_OPTIONS:
        of_all = each.metastores == METASTORES
        where = "every" if of_all else ", ".join(f"`{name}`" for name in each.metastores)
        lines.append(f"| `{each.key}` | {where} | {each.sentence} |")
    return "\n".join(lines) + "\n"


def procedures_page() -> str:
    """Return the page of the procedures that `spark_jobs.call` knows."""
    lines = ["# Procedures by call", "", GENERATED, ""]
    lines += [
        "`spark_jobs.call(spark, 'sys.compact', table='shop.orders')` works like `CALL` in",
        "Paimon's SQL, on Paimon tables, and returns the report. Procedures and arguments have",
        "Paimon's names; an argument that is not listed is refused. Write partitions as",
        "`'dt=1,h=2;dt=3'`, durations as `'7 d'`, and times as text in UTC such as",
        "`'2024-01-31 10:00:00'`, or as milliseconds since 1970.",
        "",
        "`compact`, `rescale` and `remove_orphan_files` run in Spark's tasks; all other procedures",
        "run in the calling process. Without a session, pass `None` and `warehouse=` (and",
        "`catalog_options=` if needed): then the calling process does all work.",
        "",
        "As in Paimon, a procedure deletes at once; with `dry_run=True`, if it has this argument,",
        "it only reports. `delete_tag`, `replace_tag` and a rollback that deletes snapshots are",
        "refused if a tag or a branch needs what they delete; `table.tags.delete`,",
        "`table.tags.replace` and `table.rollback` take `force=True`. [The list of all",
        "procedures](../procedures.md) has commands for the procedures that are missing here.",
        "",
        "| procedure | arguments (required ones in bold) | effect |",
        "|---|---|---|",
    ]
    for procedure in PROCEDURES.values():
        names = [f"**`{n}`**" if n in procedure.needed else f"`{n}`" for n in procedure.arguments]
        lines.append(
            f"| `{procedure.name}` | {', '.join(names)} | {procedure.meaning.replace('``', '`')} |"
        )
    return "\n".join(lines) + "\n"


def spark_options_page() -> str:
    """Return the page of the options of `format("lake")`."""
    lines = ['# Options of `format("lake")`', "", GENERATED, ""]
    lines += [
        "Give these to a reader or writer of Spark as `option(name, value)`. An option that is not",
        "listed, or has no effect where it is given, is refused, except Spark's own",
        "`checkpointLocation` and `queryName`. [Tables on Spark](../spark.md) has examples.",
        "",
        "| option | for | meaning |",
        "|---|---|---|",
    ]
    for option in OPTIONS:
        uses = "all" if len(option.uses) == len(Use) else ", ".join(option.uses)
        lines.append(f"| `{option.name}` | {uses} | {option.meaning} |")
    return "\n".join(lines) + "\n"


def options_page() -> str:
    """Return the page of all table options, grouped by purpose."""
    lines = ["# Table options", "", GENERATED, ""]
    lines += [
        "This page has the options of Paimon tables. Give them as str to",
        "`create_table(..., options={...})`; the table's schema stores them. `lake set-option`",
        "changes them later, except those that are fixed after the first snapshot. A key that",
        "differs from a known one by a few letters is refused, and the error names the known key.",
        "Credentials and unknown keys that begin with `file-index.` are refused, too. For other",
        "keys see [options of other engines](options-of-other-engines.md).",
        "",
        "- A row has a **kind**: `+I` (insert), `-U` and `+U` (an update: the row before and",
        "  after) or `-D` (delete).",
        "- Writers add most files of a primary-key table to **level** 0 of a bucket; compactions",
        "  merge them to higher levels. A **sorted run** is one file of level 0, or all files of a",
        "  higher level. A **full** compaction compacts every bucket completely; a **minor** one",
        "  (`lake compact` with `--strategy minor`) compacts the files that the options select.",
        "- An **expiry** deletes old snapshots, changelogs or partitions. Writers of this library",
        "  never do that; `lake expire`, `lake partition expire` and `lake maintain` do.",
    ]
    for group in Group:
        lines += ["", f"## {group.capitalize()}", ""]
        lines += ["| option | takes | default | meaning |", "|---|---|---|---|"]
        lines += [_option_row(option) for option in declared_options() if option.group is group]
    return "\n".join(lines) + "\n"


def other_engines_page() -> str:
    """Return the page of the options that only other engines implement, with their effects here."""
    lines = ["# Options of other engines", "", GENERATED, ""]
    lines += [
        "Flink, Java and Spark know options of Paimon tables that this library does not implement.",
        "This page has the effect of each such option in this library. Those of the last section",
        "can prevent that a table is read or written.",
    ]
    return "\n".join([*lines, *_theirs(), *_layout(), *_meaning()]) + "\n"


def _theirs() -> list[str]:
    return [
        *("", "## Ignored, for other engines", ""),
        "These affect neither the rows of a table nor its files. A key that is neither on this",
        "page nor one of the [options of this library](options.md) is ignored, too, and `lake",
        "health` names it in a note; but unknown keys with a prefix of the last section prevent",
        "operations. `create_table` and `alter_table` refuse to set misspellings of known keys,",
        "credentials, and unknown keys that begin with `file-index.`. Of two options, this library",
        "checks the value: `deletion-vectors.modifiable` and",
        "`metadata.iceberg.hive-client-class`.",
        *("", "| they concern | options |", "|---|---|"),
        *_foreign_rows(ForeignClass.THEIRS),
    ]


def _layout() -> list[str]:
    return [
        *("", "## Ignored, for files of another layout", ""),
        "These affect the layout of files, not the rows. Files written here follow the [options of",
        "this library](options.md) instead, and `lake health` names the ignored ones in a note.",
        *("", "| they concern | options |", "|---|---|"),
        *_foreign_rows(ForeignClass.LAYOUT),
    ]


def _meaning() -> list[str]:
    prefixes = ", ".join(f"`{prefix}`" for prefix in MEANING_PREFIXES)
    return [
        *("", "## Refused, operation by operation", ""),
        "These affect rows or give a guarantee, and this version does not implement them. The",
        "operations of the last column are refused with the name of the option; all other",
        "operations work. A *read* is one of the rows of a snapshot; *changes* are read between",
        "snapshots. A *write* can also be an update or a delete of rows. A *commit* is here one",
        "that writes no rows, such as to drop partitions, roll back or analyze. An *expire*",
        "deletes snapshots, also in a rollback. An unlisted key",
        f"that begins with {prefixes}",
        "is treated like the last line. With an allowed value no operation is refused; for",
        "`metadata.iceberg.storage` see [publishing](../publish.md). `create_table` and",
        "`alter_table` refuse to set any other value.",
        *("", "| option | meaning | allowed values | refused operations |", "|---|---|---|---|"),
        *(
            f"| `{key}` | {option.says} | {_values(option)} | {_refused(option)} |"
            for key, option in sorted(FOREIGN_OPTIONS.items())
            if option.kind is ForeignClass.MEANING
        ),
        f"| any other that begins with one of these prefixes | {UNKNOWN_MEANING.says} "
        f"| {_values(UNKNOWN_MEANING)} | {_refused(UNKNOWN_MEANING)} |",
    ]


def _foreign_rows(kind: ForeignClass) -> list[str]:
    by_concern: dict[str, list[str]] = {}
    for key, option in sorted({**FOREIGN_OPTIONS, **FOREIGN_PATTERNS}.items()):
        if option.kind is kind:
            by_concern.setdefault(option.says, []).append(f"`{key}`")
    return [f"| {says} | {', '.join(keys)} |" for says, keys in sorted(by_concern.items())]


def _values(option: ForeignOption) -> str:
    return ", ".join(f"`{value}`" for value in option.harmless if value)


def _refused(option: ForeignOption) -> str:
    where = f"; refused only for {option.only}" if option.only else ""
    return ", ".join(each for each in Operation if each in option.refuses) + where


def _option_row(option: Option[object]) -> str:
    default = f"`{option.default}`" if str(option.default) else ""
    fixed = is_fixed(option.key) and not isinstance(option, ColumnOption)
    meaning = option.description + (" Fixed after the first snapshot." if fixed else "")
    return f"| `{option.key}` | {option.kind.name} | {default} | {meaning} |"


def fault_matrix_page() -> str:
    """Return the page of faults and their required outcomes."""
    lines = ["# What a table survives", "", GENERATED, ""]
    lines += [
        "This page lists the faults that a Paimon or [Mixed](mixed.md) table survives, for example",
        "killed processes and full disks. Iceberg tables have [their own page](iceberg-proofs.md).",
        "",
        "The files `tests/crash/faults_*.py` name the tests of each fault by its number.",
        "`bin/test crash --all` runs those below `tests/crash/`. Numbers 9, 13 and 14 are faults",
        "of callbacks, which this library does not have.",
        "",
        "- A **retry** repeats the call; a commit keeps its commit user and identifier.",
        "- **Commit messages** name the files that tasks have written for a commit. A [**staged",
        "  result**](ingest.md#staging) stores them in the table, so that a check can come before",
        "  the publication.",
        "- A **conditional PUT** creates an object only if no object has its name.",
        "- A **lease** is the time for which a lock belongs to its holder.",
        "- A **rescale** changes the number of buckets.",
        "- An **orphan** is a file that no snapshot needs.",
        "- The **hints** LATEST and EARLIEST are files with the numbers of the newest and oldest",
        "  snapshot. A hint may be wrong.",
        "",
    ]
    return "\n".join(lines) + "\n" + fault_matrix.page()


def main() -> None:
    """Write every page."""
    for name, content in pages().items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(content)


if __name__ == "__main__":
    main()

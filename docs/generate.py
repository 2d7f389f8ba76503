"""Writes the reference pages from declarations in the code; a test compares pages and code.

python docs/generate.py          rewrite the pages
"""

from __future__ import annotations

import sys
from pathlib import Path

from lakeformat.catalog.iceberg.options import ICEBERG_OPTIONS, METASTORES
from lakeformat.catalog.options import declared_catalog_options
from spark_jobs.frames.procedures import PROCEDURES
from spark_jobs.source.options import OPTIONS, Use

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # for the tests, which no package installs

from docs.api_pages import api_pages  # noqa: E402 - found by the line above
from docs.command_page import command_line_page  # noqa: E402 - the same
from docs.job_pages import jobs_page  # noqa: E402 - the same
from docs.licences_page import licences_page  # noqa: E402 - the same
from docs.option_pages import options_page, other_engines_page  # noqa: E402 - the same
from docs.provider_manifest import provider_manifest  # noqa: E402 - the same
from tests.crash import fault_matrix  # noqa: E402 - the same

GENERATED = "<!-- Written by docs/generate.py: change the code, then run it. -->"


def pages() -> dict[str, str]:
    """Return the text of every generated file by its path from docs/."""
    return {
        "reference/catalog-options.md": catalog_options_page(),
        "reference/options.md": options_page(GENERATED),
        "reference/options-of-other-engines.md": other_engines_page(GENERATED),
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
        "refused. The option `format` is `paimon` (the default) or `iceberg`. Catalogs of Iceberg",
        "tables have [options of their own](#catalogs-of-iceberg-tables).",
        "",
        "Besides the options in the table below, a catalog of Paimon tables takes:",
        "",
        "- `jdbc.<property>`, with the jdbc metastore, for the connection (`jdbc.user`,",
        "  `jdbc.password` and so on)",
        "- `table-default.<option>`: the default of a table option for new tables",
        "- `metadata.iceberg.<key>`: address and login of an Iceberg catalog in which tables are",
        "  [published](../publish.md)",
        "- the options of the [storage](../storage.md), such as `s3.endpoint`",
        "",
        "| option | metastore | takes | default | meaning |",
        "|---|---|---|---|---|",
    ]
    shared = ("metastore", "case-sensitive", "external-roots")
    options = sorted(declared_catalog_options(), key=lambda o: (o.key not in shared, o.key))
    for o in options:
        where = "every" if o.key in shared else "`jdbc`"
        lines.append(
            f"| `{o.key}` | {where} | {o.kind.name} | {_code(o.default)} | {o.description} |"
        )
    lines += [
        "",
        "## Catalogs of Iceberg tables",
        "",
        "A catalog with the format `iceberg` has Iceberg tables and [Mixed tables](../mixed.md).",
        "Its `metastore` is `path` (the default), `sql`, `rest`, `hive` or `glue`. [Iceberg",
        "catalogs](../iceberg-catalogs.md) has examples. Also accepted:",
        "",
        "- `uri`: the address of the metastore `sql` (SQLite or PostgreSQL), `rest` or `hive`,",
        "  which need it",
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


def _code(default: str) -> str:
    """Return a default as code; one in words, such as "true with jdbc, else false", as text."""
    return f"`{default}`" if default and "," not in default else default


def procedures_page() -> str:
    """Return the page of the procedures that `spark_jobs.call` knows."""
    lines = ["# Procedures by call", "", GENERATED, ""]
    lines += [
        "`spark_jobs.call(spark, 'sys.compact', table='shop.orders')` works like `CALL` in",
        "Paimon's SQL, on Paimon tables, and returns the report. Procedures and arguments have",
        "Paimon's names; an argument that is not listed is refused. Write partitions as",
        "`'dt=1,h=2;dt=3'`, durations as `'7 d'`, and times as text in UTC such as",
        "`'2024-01-31 10:00:00'`, or as milliseconds since 1970. `where` is a SQL condition on",
        "partition columns.",
        "",
        "`compact`, `rescale` and `remove_orphan_files` run in Spark's tasks; all other procedures",
        "run in the calling process. Without a session, pass `None` and `warehouse=` (and",
        "`catalog_options=` if needed): then the calling process does all work.",
        "",
        "As in Paimon, a procedure deletes at once. With `dry_run=True`, a procedure that has this",
        "argument only reports. Some calls are refused:",
        "",
        "- `delete_tag` and `replace_tag`, for a tag at which a branch began, and for a tag",
        "  `rollback-to-as-latest-…` that is still needed. `rollback_to_as_latest` creates such a",
        "  tag to protect the files that it restores. With `force=True`, `table.tags.delete` and",
        "  `table.tags.replace` accept these tags, unless an expiry of this library could then",
        "  delete the restored files.",
        "- All rollbacks except `rollback_to_as_latest`, if a tag or a branch needs a snapshot",
        "  that they delete. `table.rollback` with `as_latest=False` and `force=True` deletes it",
        "  anyway.",
        "",
        "[Jobs](../jobs.md) describes most arguments in detail, some of them under other names.",
        "For Paimon's procedures that are missing here, see [the list of all",
        "procedures](../procedures.md).",
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
        "Give these to a reader or writer of Spark as `option(name, value)`. Spark's own options",
        "`checkpointLocation` and `queryName` are accepted, too. Any other option is refused, and",
        "so is an option that would have no effect. [Tables on Spark](../spark.md) has examples.",
        "",
        "| option | for | meaning |",
        "|---|---|---|",
    ]
    for option in OPTIONS:
        uses = "all" if len(option.uses) == len(Use) else ", ".join(option.uses)
        lines.append(f"| `{option.name}` | {uses} | {option.meaning} |")
    return "\n".join(lines) + "\n"


def fault_matrix_page() -> str:
    """Return the page of faults and their required outcomes."""
    lines = ["# What a table survives", "", GENERATED, ""]
    lines += [
        "This page lists the faults that a Paimon or [Mixed](mixed.md) table survives, for example",
        "killed processes and full disks. Iceberg tables have [their own page](iceberg-proofs.md).",
        "",
        "The files `tests/crash/faults_*.py` list the tests of each fault under its number.",
        "Some of these tests are in other directories; `bin/test crash --all` runs only the tests",
        "below `tests/crash/`. Numbers 9, 13 and 14 are missing: they are faults of callbacks at",
        "commits, which this library does not have.",
        "",
        "- A **retry** repeats the call. For a commit it passes the same",
        "  [`CommitId`](library.md#write-and-read).",
        "- **Commit messages** name the files that tasks have written for a commit. A [**staged",
        "  result**](ingest.md#staging) stores them in the table, so that a check can come before",
        "  the publication.",
        "- A **conditional PUT** creates an object only if no object has its name.",
        "- A **lease** is the time for which a lock belongs to its holder.",
        "- A **rescale** changes the number of buckets. A **fast-forward** gives main the state of",
        "  a [branch](tags-and-branches.md#branches).",
        "- **`read_snapshot`** is the argument with the snapshot that a batch has read, see",
        "  [Stream and batch](stream-and-batch.md).",
        "- [Mixed tables](mixed.md) explains the **stores** and the **optimizing** of a Mixed",
        "  table. Another process can [end](mixed-batches.md#the-lease) a **batch** that hangs.",
        "- A **commit user** is the name in a `CommitId`. Each snapshot records it.",
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

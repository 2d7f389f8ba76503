"""The pages of table options: those of this library, and those that only other engines have."""

from __future__ import annotations

import re

from lakeformat.files.codecs import CODECS, COMPRESSIONS
from lakeformat.paimon.aggregate_rules import FUNCTION_NAMES
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

__all__ = ["options_page", "other_engines_page"]


def options_page(generated: str) -> str:
    """Return the page of all table options, grouped by purpose."""
    lines = ["# Table options", "", generated, ""]
    lines += [
        "This page has the options of Paimon tables. Give them to",
        '`create_table(..., options={"bucket": "4"})`; the table\'s schema stores them as text.',
        "`lake set-option` changes them later, except those that are fixed after the first",
        "snapshot. A key that differs from a known one by a few letters is refused, and the error",
        "names the known key. Credentials are refused, too, and so are unknown keys that begin",
        "with `file-index.`. For other keys see",
        "[options of other engines](options-of-other-engines.md).",
        "",
        "- A row has a **kind**: `+I` (insert), `-U` and `+U` (an update: the row before and",
        "  after) or `-D` (delete).",
        "- Writers add most files of a primary-key table to **level** 0 of a bucket; compactions",
        "  merge them to higher levels. A **sorted run** is one file of level 0, or all files of a",
        "  higher level. A **full** compaction of a primary-key table moves all rows of each",
        "  bucket to the highest level. In an append table, it merges small files even if there",
        "  are only a few, and may keep large files. A **minor** compaction (`lake compact` with",
        "  `--strategy minor`) compacts the files that the options select.",
        "- An **expiry** deletes old snapshots, changelogs or partitions. Writers of this library",
        "  never do that; `lake expire`, `lake partition expire` and `lake maintain` do.",
        "- A [**changelog**](../changelog.md) has the changes of rows, for readers of changes. A",
        "  **consumer** stores the position of such a reader.",
        "- A **commit user** is the name of the job or run that commits. A **sequence group** is a",
        "  set of columns, see `fields.<column>.sequence-group`.",
        "- Options with `iceberg.` in their key are for [published tables](../publish.md). That",
        "  page also explains `metadata.iceberg.storage` and `metadata.iceberg.rest.…`.",
        "- A [catalog option](catalog-options.md) belongs to a catalog, not to a table.",
        "- A **duration** or a **size** is a number with a unit: `10 s`, `7 d`; `128 mb`, `1 gb`.",
        "- A list of **columns** has no space after a comma: `id,region`.",
        "- An empty cell *default* means that the option is unset by default. In the column",
        "  *takes*, and before a colon in the column *meaning*, the word *empty* means that the",
        "  option is unset.",
        f"- A **compression** is, in {_compressions()}.",
        f"- An **aggregate function** is one of {', '.join(FUNCTION_NAMES)}. Newer",
        "  releases of Paimon refuse the function `count`.",
    ]
    for group in Group:
        lines += ["", f"## {group.capitalize()}", ""]
        lines += ["| option | takes | default | meaning |", "|---|---|---|---|"]
        lines += [_option_row(option) for option in declared_options() if option.group is group]
    return "\n".join(lines) + "\n"


def other_engines_page(generated: str) -> str:
    """Return the page of the options that only other engines implement, with their effects here."""
    lines = ["# Options of other engines", "", generated, ""]
    lines += [
        "Paimon's Java library, Flink and Spark know options of Paimon tables that this library",
        "does not implement. This page lists their effects in this library. In the tables,",
        "*here* means in this library. Options of the last section can prevent reads or writes of",
        "a table.",
    ]
    return "\n".join([*lines, *_theirs(), *_layout(), *_meaning()]) + "\n"


def _theirs() -> list[str]:
    return [
        *("", "## Ignored, for other engines", ""),
        "This library ignores the options of this section, unless their row names an effect here.",
        "A key that is neither on this page nor on that of the",
        "[options of this library](options.md) is ignored, too, and `lake health` names it in a",
        "note. But an unknown key prevents operations if it begins with a prefix that",
        "[the last section](#refused-operation-by-operation) lists.",
        *("", "| they concern | options |", "|---|---|"),
        *_foreign_rows(ForeignClass.THEIRS),
    ]


def _layout() -> list[str]:
    return [
        *("", "## Ignored, for files of another layout", ""),
        "The options of this section affect the layout of files, not the rows. Files written here",
        "follow the [options of this library](options.md) instead, and `lake health` names the",
        "ignored options in a note.",
        *("", "| they concern | options |", "|---|---|"),
        *_foreign_rows(ForeignClass.LAYOUT),
    ]


def _meaning() -> list[str]:
    prefixes = ", ".join(f"`{prefix}`" for prefix in MEANING_PREFIXES)
    return [
        *("", "## Refused, operation by operation", ""),
        "The options of this section affect rows or give a guarantee, and this version supports",
        "only the *allowed values*. With another value, the operations of the last column are",
        "refused, and the error names the option. All other operations work. The names of",
        "operations mean:",
        "",
        "- `read` reads the rows of a snapshot, and `changes` the changes between snapshots.",
        "- `write` adds, updates and deletes rows.",
        "- `compact` compacts, rescales and builds file indexes.",
        "- `commit` makes commits without rows, for example to drop partitions or analyze.",
        "- `expire` deletes snapshots. A rollback that deletes snapshots counts as `expire`, any",
        "  other rollback as `commit`.",
        "- `tag` creates, replaces, renames or deletes tags.",
        "",
        "An option that is not set restricts no operation. `create_table` and `alter_table` refuse",
        "to set a value that is not allowed. If the cell of the allowed values is empty, no value",
        "is allowed. For `metadata.iceberg.storage` see [publishing](../publish.md). The last row",
        f"is for unlisted keys that begin with {prefixes}.",
        *("", "| option | meaning | allowed values | refused operations |", "|---|---|---|---|"),
        *(
            f"| `{key}` | {option.says} | {_values(option)} | {_refused(option)} |"
            for key, option in sorted(FOREIGN_OPTIONS.items())
            if option.kind is ForeignClass.MEANING
        ),
        f"| any unlisted key with a prefix named above | {UNKNOWN_MEANING.says} "
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


def _compressions() -> str:
    names = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}
    return "; in ".join(f"{names[key]} files, {', '.join(CODECS[key])}" for key in CODECS)


def _takes(name: str) -> str:
    """Return the short form of a kind's name, such as "a size" for "a size such as '128 mb'". The
    head of the page explains sizes, durations and compressions.
    """
    for long, short in (
        (" or ".join(COMPRESSIONS), "a compression"),
        ("a text", "text"),
        ("a duration such as '10 s'", "a duration"),
        ("a size such as '128 mb'", "a size"),
        ("level:value, … where a value is", "level:value pairs with commas between; the value is"),
    ):
        name = name.replace(long, short)
    if re.fullmatch(r"\S+( or \S+)+", name):  # a list of words
        return name.replace(" or ", ", ", name.count(" or ") - 1)
    return name


def _option_row(option: Option[object]) -> str:
    default = f"`{option.default}`" if str(option.default) else ""
    fixed = is_fixed(option.key) and not isinstance(option, ColumnOption)
    meaning = option.description + (" Fixed after the first snapshot." if fixed else "")
    return f"| `{option.key}` | {_takes(option.kind.name)} | {default} | {meaning} |"

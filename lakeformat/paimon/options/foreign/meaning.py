# SPDX-License-Identifier: Apache-2.0
"""Options that decide which rows a table has, or promise something to readers.

Because of such an option, this library refuses some operations.
"""

from __future__ import annotations

from lakeformat.paimon.options.foreign.declaration import ForeignClass, ForeignOption, Trait
from lakeformat.paimon.options.operation import Operation as Op

__all__ = ["MEANING", "MEANING_PREFIXES", "UNKNOWN_MEANING"]

_COMMITS = frozenset({Op.WRITE, Op.COMPACT, Op.COMMIT})
_ROWS = frozenset({Op.READ, Op.CHANGES, Op.WRITE, Op.COMPACT})
_EVERYTHING = frozenset(Op)

_OTHER_ENGINE = "use the engine that set it, or remove the option if nothing needs it any more"
_OWN_READ = "read with the engine that set it, or remove the option and choose the rows in the call"


def _meaning(
    says: str,
    refuses: frozenset[Op],
    advice: str = _OTHER_ENGINE,
    *,
    harmless: tuple[str, ...] = ("false",),
    values: tuple[str, ...] | None = None,
    only: Trait | None = None,
    apart: bool = False,
) -> ForeignOption:
    if values is None:
        values = ("true", "false") if harmless == ("false",) else ()
    return ForeignOption(
        kind=ForeignClass.MEANING,
        says=says,
        advice=advice,
        refuses=refuses,
        harmless=("", *harmless),
        values=values,
        only=only,
        apart=apart,
    )


_OTHER_BRANCH = _meaning(
    "makes a scan include rows of another branch",
    frozenset({Op.READ}),
    _OWN_READ,
    harmless=(),
)
MEANING: dict[str, ForeignOption] = {
    "branch": _meaning(
        "names the branch on which other engines work",
        _EVERYTHING,
        "name the branch in the call, as in shop.orders$branch_dev, or remove the option",
        harmless=("main",),
        only=Trait.MAIN,
    ),
    "chain-table.enabled": _meaning(
        "merges the rows of the branches that scan.fallback-snapshot-branch and "
        "scan.fallback-delta-branch name, if both are set",
        _EVERYTHING - {Op.TAG},
        apart=True,
    ),
    "commit.callbacks": _meaning("calls Java classes after each commit", _COMMITS, harmless=()),
    "metadata.iceberg.storage": _meaning(
        "publishes Iceberg metadata to a catalog with each commit",
        _COMMITS | {Op.EXPIRE, Op.TAG},
        "use the engine that set it; or set it to 'disabled' if no program reads the metadata, or "
        "to 'table-location' or 'hadoop-catalog' to publish without a catalog",
        harmless=("disabled", "table-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
        values=(
            "disabled",
            "table-location",
            "hadoop-catalog",
            "hive-catalog",
            "rest-catalog",
        ),
    ),
    "pk-clustering-override": _meaning(
        "sorts rows by other columns than the primary key", _ROWS, only=Trait.KEYED
    ),
    "primary-key.nullable": _meaning("allows null in key columns", _ROWS, only=Trait.KEYED),
    "partition.timestamp-format.strict": _meaning(
        "refuses rows of partitions whose value is not a time",
        frozenset({Op.WRITE}),
        only=Trait.PARTITIONED,
    ),
    "query-auth.enabled": _meaning(
        "lets a catalog hide rows and columns",
        frozenset({Op.READ, Op.CHANGES}),
        "read through that catalog with another engine, or remove the option",
    ),
    "record-level.expire-time": _meaning(
        "deletes rows beyond a certain age when files are compacted",
        frozenset({Op.COMPACT}),
        "compact with another engine, or remove the option to keep those rows",
        harmless=(),
        only=Trait.KEYED,
    ),
    "scan.bucket": _meaning(
        "limits scans to one bucket", frozenset({Op.READ}), _OWN_READ, harmless=()
    ),
    "scan.fallback-branch": _OTHER_BRANCH,
    "scan.primary-branch": _OTHER_BRANCH,
    "sequence.snapshot-ordering": _meaning(
        "orders rows of one key by the snapshot that added them",
        frozenset({Op.READ, Op.WRITE, Op.COMPACT}),
        only=Trait.KEYED,
    ),
    "tag.callbacks": _meaning(
        "calls Java classes when a tag is made or deleted", frozenset({Op.TAG}), harmless=()
    ),
    "type": _meaning(
        "declares a table of another kind, whose rows are not in Paimon's data files",
        _EVERYTHING,
        "read it with the engine that made it; a format-table is a directory of plain files, which "
        "`lake migrate` turns into a table; an iceberg-table or lance-table needs a reader of that "
        "format; an object-table only lists files of the storage",
        harmless=("table", "materialized-table"),
        values=(
            "table",
            "materialized-table",
            "format-table",
            "iceberg-table",
            "lance-table",
            "object-table",
        ),
    ),
    "write.sequence-number-init-mode": _meaning(
        "makes writers take their first sequence number from a property of the newest snapshot",
        _COMMITS,
        harmless=("scan",),
        only=Trait.KEYED,
    ),
}

MEANING_PREFIXES = (
    "chain-table.",
    "data-evolution.",
    "deletion-vectors.",
    "record-level.",
    "sequence.",
)
UNKNOWN_MEANING = _meaning(
    "is an unknown option that may decide which rows the table has", _ROWS, values=()
)
"""The declaration for keys with a prefix in ``MEANING_PREFIXES`` that are not declared by name."""

# SPDX-License-Identifier: Apache-2.0
"""Advice for commands that do not work on Iceberg or Mixed tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

__all__ = ["INSTEAD", "INSTEAD_FOR_MIXED", "advice_for"]

_DAMAGE = (
    "`lake scan TABLE` names the first missing file, and `lake rollback TABLE --snapshot ID` "
    "restores a snapshot whose files all exist"
)
_COPY = (
    "make another table with `lake create-table`, and copy the rows with `lake scan TABLE --output "
    "rows.parquet` and `lake write`; or make a second history over the same files with `lake "
    "branch create TABLE BRANCH`"
)
_DELETE = "`lake delete TABLE --where CONDITION` removes the files of whole partitions, too"

INSTEAD: Final[Mapping[str, str]] = {
    "buckets": "buckets are partitions here, and `lake partitions TABLE` shows them",
    "changelog": "it has no changelog files; `lake changes TABLE --after SNAPSHOT` shows changes",
    "clone": _COPY,
    "clone-database": _COPY,
    "consumers": "`lake consumer list TABLE` shows its consumers",
    "indexes": "`lake files TABLE` shows its delete files and deletion vectors",
    "migrate": "create the table with `lake create-table`, then add the files with `lake write`",
    "missing-files": _DAMAGE,
    "missing-manifests": _DAMAGE,
    "partition done": "mark the complete state with a tag, so that waiting jobs find it: `lake tag "
    "create TABLE TAG`",
    "partition drop": _DELETE,
    "partition expire": _DELETE,
    "publish": "every reader of Iceberg can read it, so nothing needs to be published",
    "repair": "its catalog makes each change in one step, so nothing needs a repair; `lake tables` "
    "shows the tables",
    "repair-hints": "readers look for newer metadata files than the hint names, so an old hint "
    "needs no repair",
    "rescale": "its buckets are partitions; run ALTER TABLE … REPLACE PARTITION FIELD in Spark",
    "rewrite-file-index": "scans skip files by the bounds of columns; `lake compact TABLE "
    "--order-by COLUMN` narrows these bounds",
    "schemas": "`lake scan TABLE --limit 1` shows the columns; in Python, table.schema has them",
    "statistics": "`lake files TABLE --json` shows the statistics of files; `lake analyze TABLE` "
    "counts the distinct values of columns",
    "tag create-due": "create tags on a schedule of your own: `lake tag create TABLE TAG "
    "--retain '30 d'`",
}
"""The advice for Iceberg tables; each key is a command without ``lake``."""

_FILES = "`lake files TABLE` shows the files of both stores"
_EARLIER = "`lake scan TABLE --as-of TIME` reads an earlier state"
_LOST = "`lake scan TABLE` names the first missing file: restore it from a backup"
_ROWS = "`lake delete TABLE --where CONDITION` deletes the rows"

INSTEAD_FOR_MIXED: Final[Mapping[str, str]] = {
    "branches": _EARLIER,
    "buckets": _FILES,
    "changelog": "its change store is the changelog: `lake changes TABLE --after POSITION` shows "
    "changes",
    "consumers": INSTEAD["consumers"],
    "indexes": _FILES,
    "missing-files": _LOST,
    "missing-manifests": _LOST,
    "partition done": "check the rows that must have arrived: `lake check TABLE --min-rows NUMBER`",
    "partition drop": _ROWS,
    "partition expire": _ROWS,
    "publish": "readers of Iceberg read each of its stores in place, so nothing needs to be "
    "published",
    "repair-hints": INSTEAD["repair-hints"],
    "rescale": "`lake set-option TABLE change.file-index.hash-bucket=8` sets the number of hash "
    "buckets for new changes, and existing files remain valid",
    "rewrite-file-index": "scans skip files by partitions, hash buckets of keys and the bounds of "
    "columns",
    "schemas": INSTEAD["schemas"],
    "statistics": _FILES,
    "tag create-due": _EARLIER,
    "tags": _EARLIER,
}
"""The advice for Mixed tables; each key is a command without ``lake``."""

_OF_TABLE = re.compile(r"(`lake [a-z -]+ )TABLE\b")

_BY_FORMAT: Final[Mapping[str, Mapping[str, str]]] = {
    "iceberg": INSTEAD,
    "mixed": INSTEAD_FOR_MIXED,
}


def advice_for(table_format: str, command: str, table: str | None = None) -> str:
    """Return the advice for a command that does not work on tables of ``table_format``.

    In commands inside the advice, the name ``table`` replaces ``TABLE``; None keeps ``TABLE``.
    """
    known = _BY_FORMAT.get(table_format, {})
    advice = known.get(command, "`lake scan`, `lake snapshots` and `lake files` read it")
    if table is None:
        return advice
    return _OF_TABLE.sub(lambda found: f"{found[1]}{shlex.quote(table)}", advice)

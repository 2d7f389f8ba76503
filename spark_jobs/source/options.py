# SPDX-License-Identifier: Apache-2.0
"""The options of ``format("lake")``, each declared once; an unknown option is refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import lakeformat as lake

__all__ = ["OPTIONS", "SourceOption", "Use", "read_options", "require_fit"]


class Use(StrEnum):
    """A way to use a table; each option applies to some of these ways."""

    READ = "batch read"
    STREAM_READ = "stream read"
    WRITE = "batch write"
    STREAM_WRITE = "stream write"


_READS = (Use.READ, Use.STREAM_READ)
_WRITES = (Use.WRITE, Use.STREAM_WRITE)


@dataclass(frozen=True, slots=True)
class SourceOption:
    """An option: its name, the uses to which it applies, and its description."""

    name: str
    uses: tuple[Use, ...]
    meaning: str


OPTIONS = (
    SourceOption(
        "path",
        (*Use,),
        "The argument of `load`, `save` and `start`: `database.table`, or the directory of a "
        "table.",
    ),
    SourceOption("table", (*Use,), "The table, if `load`, `save` or `start` has no argument."),
    SourceOption(
        "warehouse",
        (*Use,),
        "The warehouse. Default: the warehouse passed to `spark_jobs.session` or `register`. The "
        "catalog options passed there apply only to this warehouse: any other warehouse is opened "
        "without catalog options.",
    ),
    SourceOption(
        "columns",
        _READS,
        "The columns to read, such as `id, note`. Without this option all columns are read, "
        "also those that the query does not use.",
    ),
    SourceOption(
        "where",
        _READS,
        "Only rows that meet this SQL condition. A file is not read if its partition, statistics "
        "or file index show that it has no such row.",
    ),
    SourceOption(
        "rowkind",
        _READS,
        "`true` adds a first column `rowkind` with `+I`, `-U`, `+U` or `-D` for each row; `false` "
        "leaves out the rows `-U` and `-D`. Required for a stream of a table with a primary key, "
        "or of an Iceberg or Mixed table. Otherwise the default is `true` for changes between two "
        "snapshots or times, and `false` for other reads.",
    ),
    SourceOption(
        "scan.snapshot-id",
        _READS,
        "The snapshot to read, or the snapshot at which a stream starts (see `scan.mode`). For a "
        "Paimon table give its number, for an Iceberg or Mixed table its id.",
    ),
    SourceOption(
        "scan.tag-name", (Use.READ,), "The tag whose snapshot is read. Mixed tables have no tags."
    ),
    SourceOption(
        "scan.timestamp",
        _READS,
        "The time of the state to read, or the time at which a stream starts (see `scan.mode`), "
        "such as `2024-01-31 10:00:00`, in UTC.",
    ),
    SourceOption(
        "scan.timestamp-millis", _READS, "Like `scan.timestamp`, in milliseconds since 1970 (UTC)."
    ),
    SourceOption(
        "scan.watermark",
        (Use.READ,),
        "Only for Paimon tables: read the first snapshot whose watermark is at least this, in "
        "milliseconds since 1970 (UTC).",
    ),
    SourceOption(
        "incremental-between",
        (Use.READ,),
        "Two snapshots or tags: read the changes after the first, up to and including the second. "
        "In a Paimon table, `3,7` reads the changes of snapshots 4 to 7. Iceberg and Mixed tables "
        "take ids of snapshots in place of numbers.",
    ),
    SourceOption(
        "incremental-between-timestamp",
        (Use.READ,),
        "The changes committed after one time, up to another, such as "
        "`2024-01-31 10:00:00,2024-01-31 11:00:00` in UTC, or two numbers of milliseconds since "
        "1970.",
    ),
    SourceOption(
        "incremental-between-scan-mode",
        (Use.READ,),
        "The source of changes: `auto` (default), `delta`, `changelog` or `diff` (see "
        "[changelogs](../changelog.md)). Iceberg tables have `appends` in place of `delta`; Mixed "
        "tables have only `auto` and `changelog`.",
    ),
    SourceOption(
        "scan.mode",
        (Use.STREAM_READ,),
        "The start of a stream. Three modes read all rows of a snapshot, then later changes: "
        "`latest-full` (default; the newest snapshot), `compacted-full` (the newest compaction, or "
        "the newest snapshot if there is none) and `from-snapshot-full` (the snapshot "
        "`scan.snapshot-id`). Three modes read only changes: `latest` (from the next snapshot on), "
        "`from-snapshot` (from `scan.snapshot-id` on, including it) and `from-timestamp` (from "
        "`scan.timestamp` or `scan.timestamp-millis` on).",
    ),
    SourceOption(
        "consumer-id",
        (Use.STREAM_READ,),
        "The name of a consumer, which stores the position of the stream in the table and keeps "
        "unread snapshots from expiring. Other engines can still expire unread snapshots of "
        "Iceberg and Mixed tables. If the consumer exists, a new stream begins at its position and "
        "ignores `scan.mode`.",
    ),
    SourceOption(
        "max-snapshots-per-batch",
        (Use.STREAM_READ,),
        "The largest number of snapshots in a micro-batch. Default: all new ones. The limit does "
        "not apply to the rows that a stream starts with.",
    ),
    SourceOption(
        "kinds",
        _WRITES,
        "The column with the kind of each row (`+I`, `-U`, `+U` or `-D`). Default: all rows are "
        "inserted, unless the table option `rowkind.field` names such a column. Not for Iceberg "
        "tables: use [`write_table`](../iceberg.md#spark) there.",
    ),
    SourceOption(
        "overwrite-mode",
        (Use.WRITE,),
        "The rows that `mode('overwrite')` replaces. `static` (default): all rows, or the rows of "
        "`overwrite-partition` if it is given. `dynamic`: the rows of each partition that gets new "
        "rows. Mixed tables take only `mode('append')`: use "
        "[`write_table`](../mixed-writing.md#spark) to overwrite.",
    ),
    SourceOption(
        "overwrite-partition",
        (Use.WRITE,),
        "The partition that `mode('overwrite')` replaces, such as `dt=2024-01-01, hour=3`. If a "
        "value contains a comma, or begins or ends with a blank, use `write_table` instead.",
    ),
    SourceOption(
        "commit-user",
        (Use.WRITE,),
        "A name of your run, such as `nightly-2024-01-31`; needs `commit-identifier`. A retry with "
        "the same `commit-user` and `commit-identifier` does not publish again.",
    ),
    SourceOption(
        "commit-identifier",
        (Use.WRITE,),
        "The number of the commit in the run that `commit-user` names, such as `1`; needs "
        "`commit-user`.",
    ),
    SourceOption(
        "query",
        (Use.STREAM_WRITE,),
        "A name for the stream: the same in every run, and used by no other stream. A new "
        "checkpoint needs a new name. Default: the id from the checkpoint.",
    ),
)
_OF_SPARK = ("checkpointlocation", "queryname")
"""Options of a stream that belong to Spark; Spark also passes them to the source."""

_BY_NAME = {option.name: option for option in OPTIONS}


def read_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the given options with names in lower case, without those that belong to Spark.

    Raises ``InvalidRequestError`` for an unknown option, and if ``table`` and ``path`` are both
    given.
    """
    options = {str(key).lower(): str(value) for key, value in given.items()}
    options = {name: value for name, value in options.items() if name not in _OF_SPARK}
    for name in options:
        if name not in _BY_NAME:
            close = difflib.get_close_matches(name, _BY_NAME, n=1)
            meant = f": did you mean {close[0]!r}?" if close else "."
            raise lake.InvalidRequestError(
                f"format('lake') has no option {name!r}{meant} The options are "
                f"{', '.join(_BY_NAME)}. Give options of the catalog and its storage, which may be "
                "secret, to spark_jobs.session or spark_jobs.register"
            )
    if "path" in options and "table" in options:
        raise lake.InvalidRequestError(
            "the table is given twice, as option 'table' and as the path (the argument of load, "
            "save or start): leave one out"
        )
    return options


def require_fit(options: Iterable[str], use: Use) -> None:
    """Raise ``InvalidRequestError`` for an option that has no effect for ``use``."""
    for name in options:
        if use not in _BY_NAME[name].uses:
            others = ", ".join(option.name for option in OPTIONS if use in option.uses)
            raise lake.InvalidRequestError(
                f"option {name!r} is for a {' or a '.join(_BY_NAME[name].uses)} and has no effect "
                f"in a {use}: leave it out. The options of a {use} are {others}"
            )

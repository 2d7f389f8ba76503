"""The options of ``format("lake")``: each declared once, everything else refused by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import lakeformat as lake

__all__ = ["OPTIONS", "SourceOption", "Use", "read_said", "require_fit"]


class Use(StrEnum):
    """What a table is opened for."""

    READ = "batch read"
    STREAM_READ = "stream read"
    WRITE = "batch write"
    STREAM_WRITE = "stream write"


_READS = (Use.READ, Use.STREAM_READ)
_WRITES = (Use.WRITE, Use.STREAM_WRITE)


@dataclass(frozen=True, slots=True)
class SourceOption:
    """One option: its name as users write it, where it applies, what it does."""

    name: str
    uses: tuple[Use, ...]
    meaning: str


OPTIONS = (
    SourceOption("path", (*Use,), "`database.table`, as `load`, `save` and `start` take it."),
    SourceOption("table", (*Use,), "The same, where nothing is given to `load` or `save`."),
    SourceOption("warehouse", (*Use,), "Another warehouse than the session's."),
    SourceOption("columns", _READS, "The columns to read, `id, note`: Spark itself prunes none."),
    SourceOption("where", _READS, "A SQL condition that the rows meet; it also prunes files."),
    SourceOption(
        "rowkind",
        _READS,
        "Whether the first column, `rowkind`, says what each row does: `+I`, `-U`, `+U` or `-D`. "
        "By default it does between two snapshots. A stream of a table with a primary key has to "
        "be told: without it rows that go are left out.",
    ),
    SourceOption("scan.snapshot-id", _READS, "The snapshot to read, or where a stream begins."),
    SourceOption("scan.tag-name", (Use.READ,), "The tag to read."),
    SourceOption(
        "scan.timestamp", _READS, "The time to read the table at, or where a stream begins."
    ),
    SourceOption("scan.timestamp-millis", _READS, "The same in milliseconds since 1970."),
    SourceOption("scan.watermark", (Use.READ,), "The watermark the snapshot to read has reached."),
    SourceOption(
        "incremental-between",
        (Use.READ,),
        "What changed after one snapshot or tag and up to another: `3,7`.",
    ),
    SourceOption(
        "incremental-between-timestamp",
        (Use.READ,),
        "The same between two times, as texts or in milliseconds since 1970.",
    ),
    SourceOption(
        "incremental-between-scan-mode",
        (Use.READ,),
        "Where changes are found: `auto`, `delta`, `changelog` or `diff`.",
    ),
    SourceOption(
        "scan.mode",
        (Use.STREAM_READ,),
        "Where a stream begins: `latest-full` (all rows, then what follows), `latest`, "
        "`from-snapshot`, `from-snapshot-full`, `from-timestamp` or `compacted-full`.",
    ),
    SourceOption(
        "consumer-id",
        (Use.STREAM_READ,),
        "Under this name the table remembers how far the stream has come, and keeps what it has "
        "not read.",
    ),
    SourceOption(
        "max-snapshots-per-batch",
        (Use.STREAM_READ,),
        "At most so many snapshots in a batch; all rows a stream begins with count as none.",
    ),
    SourceOption(
        "kinds", _WRITES, "The column that says what each row does; without it rows are inserted."
    ),
    SourceOption(
        "overwrite-mode",
        (Use.WRITE,),
        "What `mode('overwrite')` replaces: `static`, all rows or those of `overwrite-partition`; "
        "or `dynamic`, the partitions that get rows.",
    ),
    SourceOption(
        "overwrite-partition", (Use.WRITE,), "The partition to replace: `dt=2024-01-01, hour=3`."
    ),
    SourceOption("commit-user", (Use.WRITE,), "The run that commits: repeated, it publishes once."),
    SourceOption("commit-identifier", (Use.WRITE,), "Which of that run's commits this is."),
    SourceOption(
        "query",
        (Use.STREAM_WRITE,),
        "A name for the stream that is the same in every run; by default the id its checkpoint "
        "gives it.",
    ),
)
_OF_SPARK = ("checkpointlocation", "queryname")
"""What Spark takes for itself of the options of a stream, and passes on."""

_BY_NAME = {option.name: option for option in OPTIONS}


def read_said(given: Mapping[str, str]) -> dict[str, str]:
    """The options as they are said, by their names; an unknown one is refused."""
    said = {str(key).lower(): str(value) for key, value in given.items()}
    said = {name: value for name, value in said.items() if name not in _OF_SPARK}
    for name in said:
        if name not in _BY_NAME:
            close = difflib.get_close_matches(name, _BY_NAME, n=1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise lake.InvalidRequestError(
                f"format('lake') has no option {name!r}: {meant}There are {', '.join(_BY_NAME)}. "
                "Options of the catalog and its storage, which may be secret, are given to "
                "spark_jobs.session or spark_jobs.register"
            )
    if "path" in said and "table" in said:
        raise lake.InvalidRequestError("the table is named twice: give it to load or save alone")
    return said


def require_fit(said: Iterable[str], use: Use) -> None:
    """Refuse an option that would do nothing here."""
    for name in said:
        if use not in _BY_NAME[name].uses:
            others = ", ".join(option.name for option in OPTIONS if use in option.uses)
            raise lake.InvalidRequestError(
                f"option {name!r} is for a {' or a '.join(_BY_NAME[name].uses)}, and does nothing "
                f"in a {use}; there are {others}"
            )

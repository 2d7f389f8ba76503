# SPDX-License-Identifier: Apache-2.0
"""The form of every job: a name, a request, an example, and an outcome."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from lakeformat import Position
from lakeformat.errors import LakeError, NotFoundError
from spark_jobs.job_requests.common import JobRequest, TableRequest
from spark_jobs.job_requests.request import JsonObject, read_request

if TYPE_CHECKING:
    from lakeformat import Catalog, CommitReport, RowChangeReport, Table

__all__ = [
    "Job",
    "JobResult",
    "Outcome",
    "PartlyFailedError",
    "attach_outcome",
    "newest_snapshot",
    "no_matching_table",
    "open_warehouse",
    "snapshot_before",
    "wanted_table",
]

_Request = TypeVar("_Request", bound=JobRequest)

JobResult: TypeAlias = dict[str, Any]
"""The result of a job as JSON values."""

# Longer lists of a report are cut, because logs and databases store the result.
_MOST_MEMBERS = 100


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a job on a table or database. The result of the job is made from it."""

    reason: str
    """One sentence for the log: what was done, or why nothing was done."""
    report: Mapping[str, Any]
    """The library's report as JSON values."""
    skipped: bool = False
    """True if there was nothing to do. Work that an earlier attempt has done does not count as
    skipped.
    """
    snapshot_ids: Sequence[int] = ()
    """The ids of the snapshots that this job has published; if an earlier attempt has done the
    work, those of that attempt.
    """
    newest_before: int | None = None
    """The id of the newest snapshot when the job began; None if there was none, or if it does not
    matter because the job has published snapshots.
    """
    numbered: bool = True
    """True if the snapshots of the table are numbered in order, as in Paimon; False for Iceberg and
    Mixed tables.
    """
    replayed: bool = False
    """True if an earlier attempt with the same commit identity has done the work."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Members of the result that only this job has."""

    @classmethod
    def of_commit(
        cls,
        table: Table,
        report: CommitReport | RowChangeReport,
        newest_before: int | None,
        *,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome:
        """Return the outcome of one commit to a table."""
        published = _published_by(report)
        if published and not table.numbers_snapshots:
            newest_before = snapshot_before(table, published[0])
        return cls(
            reason=report.reason,
            report=report.to_dict(),
            skipped=report.snapshot_id is None,
            snapshot_ids=published,
            newest_before=newest_before,
            numbered=table.numbers_snapshots,
            replayed=report.replayed,
            more=more,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the members that the results of all jobs have, then the members of ``self.more``,
        then the report.
        """
        last = None if not self.snapshot_ids else self.snapshot_ids[-1]
        before = self.newest_before
        if self.snapshot_ids and self.numbered:
            last = max(self.snapshot_ids)
            before = Position.parse(min(self.snapshot_ids)).before.number or None
        return {
            "skipped": self.skipped,
            "reason": self.reason,
            "snapshot_id": last,
            "previous_snapshot_id": before,
            "replayed": self.replayed,
            **self.more,
            "report": _small(self.report),
        }


class PartlyFailedError(LakeError):
    """The error of a job that failed only in part. ``result`` is the result of the parts that
    succeeded.
    """

    def __init__(self, message: str, outcome: Outcome, *, is_conflict: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.is_conflict = is_conflict
        """True if each failure was a conflict with other writers."""
        self.result: JobResult | None = None
        """The result of the parts that succeeded; None until the job has set it."""

    @classmethod
    def of_result(cls, message: str, result: JobResult, *, is_conflict: bool) -> PartlyFailedError:
        """Return the error that a job in another process has raised, from the result that it has
        reported.
        """
        done = Outcome(reason=result["reason"], report=result["report"])
        error = cls(message, done, is_conflict=is_conflict)
        error.result = dict(result)
        return error


def attach_outcome(error: LakeError, outcome: Outcome) -> None:
    """Attach the outcome of finished work to an error.

    ``Job.answer`` turns the outcome into the ``result`` of the error. The failed job reports this
    result together with the error.
    """
    known: Any = error
    known.outcome = outcome


@dataclass(frozen=True)
class Job(Generic[_Request]):
    """A job: its name, its request, an example and the operation that it needs."""

    name: str
    request: type[_Request]
    example: JsonObject
    """A request whose ``warehouse`` is a subdirectory of the working directory."""
    operation: str
    """The operation that the table must have, such as ``compact``."""

    def answer(self, asked: _Request | JsonObject, act: Callable[[_Request], Outcome]) -> JobResult:
        """Read the request, do the work with ``act``, and return the result as JSON values.

        Raise ``InvalidRequestError`` for a wrong request. A ``LakeError`` of ``act`` is raised
        again; if it has an outcome, its ``result`` is set.
        """
        began = time.monotonic()
        wanted = read_request(self.request, asked)
        try:
            return self._result(wanted, act(wanted), began)
        except LakeError as error:
            outcome = getattr(error, "outcome", None)
            if outcome is not None:
                known: Any = error
                known.result = self._result(wanted, outcome, began)
            raise

    def _result(self, wanted: _Request, outcome: Outcome, began: float) -> JobResult:
        result = {"job": self.name, **_subject(wanted), **outcome.to_dict()}
        result["seconds"] = round(time.monotonic() - began, 3)
        plain: JobResult = json.loads(json.dumps(result, default=str))
        return plain


def open_warehouse(wanted: JobRequest) -> Catalog:
    """Open the catalog of a request."""
    import lakeformat as lake

    return lake.open_catalog(wanted.warehouse, options=wanted.catalog_options)


def wanted_table(wanted: TableRequest, operation: str) -> Table:
    """Open the table of a request. Raise ``NotFoundError`` if it does not exist, and
    ``UnsupportedError`` if its format lacks the operation.
    """
    table = open_warehouse(wanted).table(wanted.table)
    table.require(operation)
    return table


def no_matching_table(
    database: str | None, including: str | None, excluding: str | None
) -> NotFoundError:
    """Return the ``NotFoundError`` for regular expressions that match no table."""
    return NotFoundError(
        f"no table matches database={database!r}, including={including!r}, "
        f"excluding={excluding!r}: these are regular expressions for whole names, such as 'shop' "
        "or 'shop.*' for 'database', 'shop\\..*_daily' for 'including'"
    )


def newest_snapshot(table: Table) -> int | None:
    """Return the id of the newest snapshot; None if there is none."""
    snapshot = table.latest_snapshot()
    return None if snapshot is None else snapshot.id


def snapshot_before(table: Table, snapshot_id: int) -> int | None:
    """Return the id of the snapshot before ``snapshot_id`` in the history of a table.

    Return None if there is none, or if the history does not have ``snapshot_id``.
    """
    ids = [each.id for each in table.snapshots()]
    place = ids.index(snapshot_id) if snapshot_id in ids else 0
    return ids[place - 1] if place else None


def _published_by(report: CommitReport | RowChangeReport) -> list[int]:
    """Return the ids of the snapshots that a commit has published. If the commit compacted the
    table, the snapshot of the compaction is last.
    """
    compacted = getattr(report, "compact_snapshot_id", None)  # only Paimon's reports have it
    return [number for number in (report.snapshot_id, compacted) if number is not None]


def _subject(wanted: JobRequest) -> dict[str, str]:
    for name in ("table", "database"):
        if getattr(wanted, name, None) is not None:
            return {name: getattr(wanted, name)}
    return {}


def _small(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report with its lists cut to 100 members. If lists were cut, the key ``left_out``
    has the name of each of them, with the number of its missing members.
    """
    members: dict[str, Any] = {}
    left_out: dict[str, int] = {}
    for name, value in report.items():
        is_long = isinstance(value, list | tuple) and len(value) > _MOST_MEMBERS
        members[name] = value[:_MOST_MEMBERS] if is_long else value
        if is_long:
            left_out[name] = len(value) - _MOST_MEMBERS
    return {**members, "left_out": left_out} if left_out else members

"""What every job is: a name, a request, an example, and an outcome in one form."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lakeformat.errors import LakeError
from lakeformat.tables.position import Position
from spark_jobs.job_requests.common import JobRequest, TableRequest
from spark_jobs.job_requests.request import read_request

if TYPE_CHECKING:
    from lakeformat import Catalog, CommitReport, Table

__all__ = [
    "Job",
    "Outcome",
    "PartlyFailedError",
    "newest_snapshot",
    "open_warehouse",
    "tell_what_was_done",
    "wanted_table",
]

_Request = TypeVar("_Request", bound=JobRequest)

# Longer lists of a report are cut in the result: it travels through logs and databases.
_MOST_MEMBERS = 100


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job did to one table or database."""

    reason: str
    """One sentence for the log: what happened, or why nothing did."""
    report: Mapping[str, Any]
    """The library's report as plain values."""
    skipped: bool = False
    """Whether nothing was to be done; what an earlier try has done is no reason to skip."""
    snapshot_ids: Sequence[int] = ()
    """The snapshots this job, or the earlier try it repeats, has published."""
    newest_before: int | None = None
    """The table's newest snapshot when the job began, where it has published none."""
    replayed: bool = False
    """Whether an earlier try with the same commit pair had done it already."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Members of the result that this job alone has."""

    @classmethod
    def of_commit(
        cls,
        report: CommitReport,
        newest_before: int | None,
        *,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome:
        """What became of a job that is one commit."""
        return cls(
            reason=report.reason,
            report=report.to_dict(),
            skipped=report.snapshot_id is None,
            snapshot_ids=_published_by(report),
            newest_before=newest_before,
            replayed=report.replayed,
            more=more,
        )

    def to_dict(self) -> dict[str, Any]:
        """The members every result has, the report last."""
        first = min(self.snapshot_ids, default=None)
        last = max(self.snapshot_ids, default=None)
        before = self.newest_before
        if first is not None:
            before = Position.parse(first).before.number or None
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
    """Some of what a job was to do has failed, and the rest is done."""

    def __init__(self, message: str, outcome: Outcome, *, is_conflict: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.is_conflict = is_conflict
        """Whether other writers were first, and nothing else was wrong."""
        self.result: dict[str, Any] | None = None
        """What the job would have returned."""

    @classmethod
    def of_result(
        cls, message: str, result: Mapping[str, Any], *, is_conflict: bool
    ) -> PartlyFailedError:
        """The same error in another process, which knows what the job would have returned."""
        done = Outcome(reason=result["reason"], report=result["report"])
        error = cls(message, done, is_conflict=is_conflict)
        error.result = dict(result)
        return error


def tell_what_was_done(error: LakeError, outcome: Outcome) -> None:
    """Give an error that keeps its class the outcome of what was done all the same.

    ``Job.answer`` makes the ``result`` of it, which goes where that of a success goes.
    """
    known: Any = error
    known.outcome = outcome


@dataclass(frozen=True)
class Job(Generic[_Request]):
    """One job: how it is asked, and how its outcome is told."""

    name: str
    request: type[_Request]
    example: Mapping[str, Any]
    """A request that works in the folder of a warehouse with the table ``shop.orders``."""

    def answer(
        self, given: Mapping[str, Any], act: Callable[[_Request], Outcome]
    ) -> dict[str, Any]:
        """Read a request, do what it says, and say so in plain values ready for JSON."""
        began = time.monotonic()
        wanted = read_request(self.request, given)
        try:
            return self._result(wanted, act(wanted), began)
        except LakeError as error:
            outcome = getattr(error, "outcome", None)
            if outcome is not None:
                known: Any = error
                known.result = self._result(wanted, outcome, began)
            raise

    def _result(self, wanted: _Request, outcome: Outcome, began: float) -> dict[str, Any]:
        result = {"job": self.name, **_subject(wanted), **outcome.to_dict()}
        result["seconds"] = round(time.monotonic() - began, 3)
        plain: dict[str, Any] = json.loads(json.dumps(result, default=str))
        return plain


def open_warehouse(wanted: JobRequest) -> Catalog:
    """The catalog a request names."""
    import lakeformat as lake

    return lake.open_catalog(wanted.warehouse, options=wanted.catalog_options)


def wanted_table(wanted: TableRequest) -> Table:
    """The table a request names."""
    return open_warehouse(wanted).table(wanted.table)


def newest_snapshot(table: Table) -> int | None:
    """The number of the newest snapshot."""
    snapshot = table.latest_snapshot()
    return None if snapshot is None else snapshot.id


def _published_by(report: CommitReport) -> list[int]:
    """The snapshots a commit has published."""
    numbers = (report.snapshot_id, report.compact_snapshot_id)
    return [number for number in numbers if number is not None]


def _subject(wanted: JobRequest) -> dict[str, str]:
    """What the job was about, as the request names it."""
    for name in ("table", "database"):
        if getattr(wanted, name, None) is not None:
            return {name: getattr(wanted, name)}
    return {}


def _small(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report with long lists cut; ``left_out`` says how many members each lost."""
    members: dict[str, Any] = {}
    left_out: dict[str, int] = {}
    for name, value in report.items():
        is_long = isinstance(value, list | tuple) and len(value) > _MOST_MEMBERS
        members[name] = value[:_MOST_MEMBERS] if is_long else value
        if is_long:
            left_out[name] = len(value) - _MOST_MEMBERS
    return {**members, "left_out": left_out} if left_out else members

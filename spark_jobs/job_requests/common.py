"""Keys that several jobs have: where the table is, and who commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as declared
from typing import TYPE_CHECKING, Literal, TypeAlias

from spark_jobs.job_requests.request import refusal

if TYPE_CHECKING:
    from lakeformat import CommitId

__all__ = [
    "CommitKeys",
    "CommitRequest",
    "Engine",
    "JobRequest",
    "Partitions",
    "TableRequest",
    "Value",
]

Engine: TypeAlias = Literal["python", "spark"]
Value: TypeAlias = str | int | float | bool | None
Partitions: TypeAlias = Mapping[str, Value] | Sequence[Mapping[str, Value]]
"""Values of some partition columns, or several such."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """Where the tables are."""

    warehouse: str
    """Path or URI of the warehouse."""
    catalog_options: Mapping[str, str] | None = declared(default=None, repr=False)
    """Options of the catalog and its storage; no message shows their values."""
    engine: Engine = "python"
    """Where rows are read and written: in this process, or in Spark tasks, as are the manifests
    and directories of ``remove_orphans``. A job with less to do works in this process, the
    driver's if Spark runs it."""


@dataclass(frozen=True, kw_only=True)
class TableRequest(JobRequest):
    """Which table is meant."""

    table: str
    """``database.table``, or a branch of it: ``database.table$branch_name``."""


@dataclass(frozen=True, kw_only=True)
class CommitKeys:
    """Who commits, so that a repetition finds what an earlier try did."""

    commit_user: str | None = None
    """The run that commits; a repetition with the same pair publishes nothing twice."""
    commit_identifier: int | None = None
    """Which of that run's commits this is."""
    commit_first_try_millis: int | None = None
    """A moment before the first try of that commit, in epoch milliseconds: with it, a retry that
    expired snapshots would be needed for is refused, and does not publish a second time."""
    commit_first_try_head: str | None = None
    """The identity of the newest snapshot when that try began: as long as it is there, what has
    expired before it refuses nothing."""

    def __post_init__(self) -> None:
        if (self.commit_user is None) != (self.commit_identifier is None):
            raise refusal("keys 'commit_user' and 'commit_identifier' only make sense together")
        for key in ("commit_first_try_millis", "commit_first_try_head"):
            if getattr(self, key) is not None and self.commit_user is None:
                raise refusal(f"key {key!r} only makes sense with 'commit_user'")
        self.commit_id()  # a pair that is no identity is refused here, with every other value

    def commit_id(self) -> CommitId | None:
        """The identity of the commit; None for one that nobody will repeat."""
        if self.commit_user is None or self.commit_identifier is None:
            return None
        from lakeformat import CommitId

        return CommitId(
            self.commit_user,
            self.commit_identifier,
            first_try_millis=self.commit_first_try_millis,
            first_try_head=self.commit_first_try_head,
        )


@dataclass(frozen=True, kw_only=True)
class CommitRequest(TableRequest, CommitKeys):
    """One table, and who commits to it."""

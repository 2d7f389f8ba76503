# SPDX-License-Identifier: Apache-2.0
"""Keys that several jobs share: the warehouse, the table, and the commit identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as declared
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from spark_jobs.job_requests.request import check_values, key_hints, plain_value, refusal
from spark_jobs.job_requests.values import TablePosition, Value

if TYPE_CHECKING:
    from lakeformat import CommitId, InvalidRequestError, Table

__all__ = [
    "BatchRequest",
    "CommitKeys",
    "CommitRequest",
    "Conflict",
    "Engine",
    "JobRequest",
    "Partitions",
    "PartitionsRequest",
    "TableRequest",
    "Value",
]

Conflict: TypeAlias = Literal["optimistic", "transaction-order"]
Engine: TypeAlias = Literal["python", "spark"]
Partitions: TypeAlias = Mapping[str, Value] | Sequence[Mapping[str, Value]]
"""The values of some partition columns by column name, or a list of such mappings. An empty list
selects no partition, an empty mapping every partition.
"""


# A class that only others inherit from has no methods of its own: each costs a DAG file time.
@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class JobRequest:
    """Keys of every job: the warehouse, its options and the engine."""

    warehouse: str
    """Path or URI of the warehouse."""
    catalog_options: Mapping[str, str] | None = declared(default=None, repr=False)
    """[Options of the catalog](reference/catalog-options.md) and its storage. No message shows
    their values.
    """
    engine: Engine = "python"
    """With ``python`` one process does all work. With ``spark`` the tasks of Spark read and write
    the rows of ``ingest``, ``check``, ``rescale``, ``maintain``, ``compact``, ``compact_database``
    and ``changelog``. For ``remove_orphans`` of a Paimon table, the tasks read the manifests and
    directories; for other tables ``remove_orphans`` refuses ``spark``. In all other jobs, such as
    ``delete``, one process does the work with either engine.
    """

    def __post_init__(self) -> None:
        for key, hint in key_hints(type(self)).items():
            if (value := plain_value(hint, given := getattr(self, key))) is not given:
                object.__setattr__(self, key, value)
        check_values(type(self), vars(self))


@dataclass(frozen=True, kw_only=True)
class TableRequest(JobRequest):
    """Keys of every job on one table."""

    table: str
    """``database.table``, or a branch of it, as in ``shop.orders$branch_dev``."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PartitionsRequest(TableRequest):
    """Keys of every job on chosen partitions of one table."""

    where: str | None = None
    """A SQL condition on partition columns."""
    partitions: Partitions | None = None
    """Partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such objects. An empty
    list selects no partition, an empty object every partition.
    """


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CommitKeys:
    """The commit identity, by which a retry finds what an earlier attempt published."""

    commit_user: str | None = None
    """The name of the run, such as a UUID. ``commit_user`` and ``commit_identifier`` together are
    the commit identity: a retry with the same identity publishes nothing twice.
    ``compact_database`` uses one identity for all tables.
    """
    commit_identifier: int | None = None
    """The number of the commit in the run that ``commit_user`` names, such as 1; each later commit
    of the run needs a higher number. Give both keys or neither.
    """
    commit_first_try_millis: int | None = None
    """The time at which the first attempt of the commit began, in epoch milliseconds. If a retry
    does not find the commit, but snapshots since that time may have expired, it fails. Without this
    key such a retry publishes, although an earlier attempt may have published already.
    """
    commit_first_try_head: str | None = None
    """With ``commit_first_try_millis``: the identity of the snapshot that was the newest when the
    first attempt began. Read it at that time from ``table.position().identity``. While this
    snapshot exists, a retry does not fail because of expired snapshots.
    """
    commit_replaces: int | None = None
    """For ``ingest`` and ``commit`` on Paimon and Iceberg tables: the number of the snapshot (in an
    Iceberg table its id) in which the same ``commit_user`` published an earlier version of these
    rows, with a lower identifier. This commit replaces that version, or fails and publishes
    nothing. An overwrite ignores this key.
    """

    def __post_init__(self) -> None:
        if (self.commit_user is None) != (self.commit_identifier is None):
            raise refusal("give keys 'commit_user' and 'commit_identifier' together, or neither")
        for key in ("commit_first_try_millis", "commit_first_try_head", "commit_replaces"):
            if getattr(self, key) is not None and self.commit_user is None:
                raise refusal(
                    f"key {key!r} needs keys 'commit_user' and 'commit_identifier': add both, or "
                    f"leave out {key!r}"
                )
        self.commit_id()  # raises for an invalid identity

    def commit_id(self) -> CommitId | None:
        """Return the commit identity; None if the request has none. Raise ``InvalidRequestError``
        for an invalid user, identifier or time.
        """
        if self.commit_user is None or self.commit_identifier is None:
            return None
        from lakeformat import CommitId

        return CommitId(
            self.commit_user,
            self.commit_identifier,
            first_try_millis=self.commit_first_try_millis,
            first_try_head=self.commit_first_try_head,
            replaces=self.commit_replaces,
        )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CommitRequest(TableRequest, CommitKeys):
    """Keys of every job that commits to one table."""

    def __post_init__(self) -> None:
        TableRequest.__post_init__(self)
        CommitKeys.__post_init__(self)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class BatchRequest(CommitRequest):
    """Keys of jobs that write rows, which may have been computed from rows of the same table."""

    read_snapshot: TablePosition | None = None
    """For [rows that were computed from the target table](stream-and-batch.md): the position at
    which the table was read, such as ``"main/7"``. The commit is refused if other commits have
    changed the same partitions since, unless ``conflict`` keeps the rows of these commits. Only for
    Paimon tables.
    """
    conflict: Conflict | None = None
    """With ``read_snapshot``: ``transaction-order`` keeps the rows that other commits have written
    since the table was read, even if this commit has a row with the same key; ``optimistic``
    refuses the commit if other commits have changed the same partitions. Default: the table option
    ``write.conflict``. For a [Mixed table](mixed.md), ``transaction-order`` without
    ``read_snapshot`` makes the work of the job a [batch](mixed-batches.md), which begins before the
    job reads the source.
    """

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        if self.conflict == "optimistic" and self.read_snapshot is None:
            raise self._without_position()

    def require_position(self, table: Table) -> None:
        """Raise ``InvalidRequestError`` if ``conflict`` is given without ``read_snapshot``. For a
        Mixed table ``conflict`` needs no ``read_snapshot``: the job itself begins the batch.
        """
        is_begun = "end_batch" in table.operations
        if self.conflict is not None and self.read_snapshot is None and not is_begun:
            raise self._without_position()

    @staticmethod
    def _without_position() -> InvalidRequestError:
        return refusal(
            "key 'conflict' needs key 'read_snapshot', the position at which the table was read: "
            "add it, or leave out 'conflict'. Only for a Mixed table can 'conflict' be "
            "'transaction-order' without 'read_snapshot'"
        )

    @property
    def order(self) -> dict[str, Any]:
        """The arguments ``read_snapshot`` and ``conflict`` of the commit by name, without those
        that are None.
        """
        given = {"read_snapshot": self.read_snapshot, "conflict": self.conflict}
        return {name: value for name, value in given.items() if value is not None}

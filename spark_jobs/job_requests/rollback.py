# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``rollback``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, Numbered

__all__ = ["RollbackRequest"]

_TARGETS = ("snapshot", "tag", "as_of", "watermark")


@dataclass(frozen=True, kw_only=True)
class RollbackRequest(CommitRequest):
    """Restore an earlier snapshot of a Paimon or Iceberg table: give exactly one of the keys
    ``snapshot``, ``tag``, ``as_of`` and ``watermark``. Jobs with the same commit identity restore
    the table once. For an Iceberg table these jobs also need ``commit_first_try_millis``, and on a
    branch other than main ``commit_first_try_head``, too.
    """

    snapshot: Numbered | None = None
    """The number of the snapshot; in an Iceberg table its id."""
    tag: str | None = None
    """The tag of the snapshot."""
    as_of: Moment | None = None
    """Restore the snapshot that was the newest at this time."""
    watermark: int | None = None
    """Restore the last snapshot whose watermark, in epoch milliseconds, is at most this value.
    Only for Paimon tables.
    """
    as_latest: bool = True
    """True publishes the old rows of a Paimon table as a new snapshot; false deletes the newer
    snapshots instead. In an Iceberg table the branch moves back to the old snapshot, and false is
    refused.
    """
    force: bool = False
    """With ``as_latest`` false: delete the newer snapshots even if tags or branches need them."""
    dry_run: bool = False
    """Only report what would be done."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        given = [key for key in _TARGETS if getattr(self, key) is not None]
        if len(given) != 1:
            raise refusal(
                f"give exactly one of the keys {', '.join(_TARGETS)}: "
                f"got {' and '.join(given) or 'none'}"
            )
        if self.force and self.as_latest:
            raise refusal(
                "key 'force' needs a rollback that deletes snapshots: set 'as_latest' to false, or "
                "leave out 'force'"
            )

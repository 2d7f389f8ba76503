# SPDX-License-Identifier: Apache-2.0
"""The identity of a commit: the run that commits, and the number of the commit in this run."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeformat.errors import InvalidRequestError
from lakeformat.types.type_rules import is_text, is_whole_number

__all__ = [
    "BATCH_IDENTIFIER",
    "CLOCK_SKEW_MILLIS",
    "KEEP_BOTH",
    "CommitId",
    "require_commit_id",
    "require_past_first_try",
]

BATCH_IDENTIFIER = 2**63 - 1
"""The identifier of commits that are never retried."""

CLOCK_SKEW_MILLIS = 10 * 60 * 1000
"""The largest difference between the clocks of two writers, in milliseconds, that a search for an
earlier commit allows.
"""

KEEP_BOTH = (
    "commit without CommitId.replaces (in Airflow: set on_clear='force' in the DAG, then clear the "
    "task)"
)
"""Advice for messages: commit the new rows, and keep the rows of the earlier commit."""

_MILLIS = range(10**11, 10**14)
"""Accepted times in epoch milliseconds, from 1973 to 5138. Other numbers are probably in another
unit.
"""


def delete_first(table: str) -> str:
    """Return the advice to delete the rows of the earlier commit, and then to commit again.

    ``table`` is the name of the table in the command of the advice.
    """
    return f"Delete the earlier rows (lake delete {table} --where ...), then {KEEP_BOTH}"


@dataclass(frozen=True, slots=True)
class CommitId:
    """The identity of one commit.

    ``user`` names one run of one job. ``identifier`` numbers the commits of that run, ascending.
    Retry with the same pair: if the first attempt was published, the retry changes nothing. The
    commit is found only as long as its snapshot exists. If a retry may come later, also pass
    ``first_try_millis`` and ``first_try_head``.

    ``first_try_millis`` is the time when the first attempt began, in epoch milliseconds. Older
    snapshots are not searched. If the commit is not found and snapshots since then have expired,
    the retry fails with ``CommitUndecidableError``, because the first attempt may have expired with
    them. Without this argument the whole history is searched, and a commit whose snapshot has
    expired may be made twice.

    ``first_try_head`` is the ``identity`` of the newest snapshot when the first attempt began. As
    long as that snapshot exists (in Iceberg and Mixed tables: the snapshot after it), the expiry of
    older snapshots does not matter.

    ``replaces`` is the number of a snapshot in which the same user published an earlier version of
    the rows, with a lower identifier. The commit removes the rows of the newest such snapshot, even
    if ``replaces`` names an older one. But in a table with a primary key, or in an
    upsert, it removes no rows: the new row of each key wins. Sometimes the old rows cannot be
    replaced any more, for example after a compaction has merged them with other rows. Then
    ``InvalidRequestError`` is raised, and nothing is published. An overwrite ignores ``replaces``.
    """

    user: str
    identifier: int
    first_try_millis: int | None = field(default=None, compare=False)
    first_try_head: str | None = field(default=None, compare=False)
    replaces: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_text(self.user) or not self.user:
            raise InvalidRequestError(
                f"CommitId: user must be the name of the committing run, got {self.user!r}"
            )
        if not is_whole_number(self.identifier) or not 0 <= self.identifier <= BATCH_IDENTIFIER:
            raise InvalidRequestError(
                f"CommitId: identifier must be an integer from 0 to {BATCH_IDENTIFIER}, "
                f"got {self.identifier!r}"
            )
        first = self.first_try_millis
        if first is not None and (not is_whole_number(first) or first not in _MILLIS):
            raise InvalidRequestError(
                "CommitId: first_try_millis must be the start of the first attempt in epoch "
                f"milliseconds, such as 1767225600000, got {first!r}"
            )
        if self.first_try_head is not None and not is_text(self.first_try_head):
            raise InvalidRequestError(
                "CommitId: first_try_head must be the identity of a snapshot, "
                f"got {self.first_try_head!r}"
            )
        if self.replaces is not None and (not is_whole_number(self.replaces) or self.replaces < 1):
            raise InvalidRequestError(
                "CommitId: replaces must be the number of a snapshot, 1 or more, got "
                f"{self.replaces!r}"
            )

    def __str__(self) -> str:
        return f"CommitId({self.user!r}, {self.identifier})"


def require_commit_id(commit: object) -> None:
    """Raise ``InvalidRequestError`` if the argument is not a ``CommitId``."""
    if not isinstance(commit, CommitId):
        raise InvalidRequestError(
            f"commit must be a CommitId such as CommitId('run-7', 0), got {commit!r}"
        )


def require_past_first_try(commit: CommitId, now_millis: int) -> None:
    """Raise ``InvalidRequestError`` if ``first_try_millis`` of a commit is over 10 minutes in the
    future.
    """
    first = commit.first_try_millis
    if first is not None and first > now_millis + CLOCK_SKEW_MILLIS:
        raise InvalidRequestError(
            f"first_try_millis of {commit} is {first}, which is in the future: pass the time when "
            "the first attempt of this run began"
        )

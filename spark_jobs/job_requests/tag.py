# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``tag``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, Numbered, Retention

__all__ = ["TagRequest"]

_ORIGINS = ("snapshot", "from_tag", "at_or_after", "watermark")
_ONLY_WITH = {
    "snapshot": ("create", "replace"),
    "from_tag": ("create", "replace"),
    "at_or_after": ("create",),
    "watermark": ("create",),
    "retain": ("create", "replace"),
    "exist_ok": ("create",),
    "new_name": ("rename",),
    "missing_ok": ("delete",),
    "force": ("delete", "replace"),
    "dry_run": ("delete",),
}


@dataclass(frozen=True, kw_only=True)
class TagRequest(TableRequest):
    """Create, replace, rename or delete a tag of a Paimon or Iceberg table. A tag is a name for a
    snapshot. The rows of the snapshot remain readable while it has the tag.
    """

    action: Literal["create", "delete", "replace", "rename"]
    """The action; a key that only other actions take is refused."""
    tag: str
    """The name of the tag."""
    snapshot: Numbered | None = None
    """``create``, ``replace``: the number of the snapshot; in an Iceberg table its id. Default: the
    newest.
    """
    from_tag: str | None = None
    """``create``, ``replace``: use the snapshot of this other tag."""
    at_or_after: Moment | None = None
    """``create``: use the first snapshot committed at or after this time."""
    watermark: int | None = None
    """``create``: use the first snapshot whose watermark, in epoch milliseconds, has reached this
    value. Only for Paimon tables.
    """
    retain: Retention | None = None
    """``create``, ``replace``: the lifetime of the tag. In an Iceberg table it begins with the
    commit of the snapshot. Default: the table option ``tag.default-time-retained``, in an Iceberg
    table ``history.expire.max-ref-age-ms``. If neither is set, the tag is kept until you delete it.
    """
    exist_ok: bool = False
    """``create``: do nothing if the tag exists, even if it names another snapshot."""
    new_name: str | None = None
    """``rename``: the new name."""
    missing_ok: bool = False
    """``delete``: ignore a tag that does not exist."""
    force: bool = False
    """``delete``, ``replace``: also accept a tag at which a branch began, and a tag
    ``rollback-to-as-latest-…``. The latter protects files that a rollback restored. Even with
    ``force``, such a tag is refused if it still protects files and the table has more than 100
    snapshots and changelogs together. For an Iceberg table the key has no effect.
    """
    dry_run: bool = False
    """``delete``: only report what would be deleted."""

    def __post_init__(self) -> None:
        TableRequest.__post_init__(self)
        for key, actions in _ONLY_WITH.items():
            if getattr(self, key) not in (None, False) and self.action not in actions:
                raise refusal(
                    f"key {key!r} belongs to action {' or '.join(map(repr, actions))}, "
                    f"not to {self.action!r}: leave it out"
                )
        if self.action == "rename" and self.new_name is None:
            raise refusal(
                "action 'rename' needs key 'new_name', the name that the tag gets: add it"
            )
        if len(given := [key for key in _ORIGINS if getattr(self, key) is not None]) > 1:
            raise refusal(
                f"give only one of the keys {' and '.join(given)}: a tag has one snapshot"
            )

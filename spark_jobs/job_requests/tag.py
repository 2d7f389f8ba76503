"""What the job ``tag`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, Numbered, Retention, TagName

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
    """Create, replace, rename or delete a tag: a snapshot kept under a name."""

    action: Literal["create", "delete", "replace", "rename"]
    """What to do; a key below that does not belong to it is refused."""
    tag: TagName
    """The name of the tag."""
    snapshot: Numbered | None = None
    """``create``, ``replace``: the snapshot it names; the newest if nothing is said."""
    from_tag: TagName | None = None
    """``create``, ``replace``: another tag of that snapshot."""
    at_or_after: Moment | None = None
    """``create``: the first snapshot committed then or later."""
    watermark: int | None = None
    """``create``: the first snapshot that has reached it."""
    retain: Retention | None = None
    """``create``, ``replace``: after how long the tag expires, as ``"7 d"``."""
    exist_ok: bool = False
    """``create``: a tag of that name is taken as it is."""
    new_name: TagName | None = None
    """``rename``: the name it gets."""
    missing_ok: bool = False
    """``delete``: a tag that is not there is no error."""
    force: bool = False
    """``delete``, ``replace``: also a tag that a branch began at."""
    dry_run: bool = False
    """``delete``: say what would go, and change nothing."""

    def __post_init__(self) -> None:
        for key, actions in _ONLY_WITH.items():
            if getattr(self, key) not in (None, False) and self.action not in actions:
                raise refusal(
                    f"key {key!r} belongs to action {' or '.join(map(repr, actions))}, "
                    f"not to {self.action!r}"
                )
        if self.action == "rename" and self.new_name is None:
            raise refusal("action 'rename' wants key 'new_name'")
        if len(given := [key for key in _ORIGINS if getattr(self, key) is not None]) > 1:
            raise refusal(f"a tag names one snapshot: got {' and '.join(given)}")

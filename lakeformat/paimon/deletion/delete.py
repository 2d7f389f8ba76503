"""Removing planned files: in parallel, again without harm, and with an account of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from lakeformat.errors import LakeError
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.removal import FileClass, Removal
from lakeformat.paimon.handle import TableHandle

__all__ = ["Deleted", "Deleter", "OnRemoval"]

_BATCH = 1_000
_NAMED_FAILURES = 100
_log = logging.getLogger(__name__)

OnRemoval: TypeAlias = Callable[[Removal], None]
"""Hears of each file: of a dry run which would go, otherwise which is gone."""


@dataclass(slots=True)
class Deleted:
    """What was removed, counted as it happened."""

    files: dict[FileClass, int] = field(default_factory=dict)
    sizes: dict[FileClass, int] = field(default_factory=dict)
    """Bytes by kind, as far as metadata says how large its files are."""
    failed: list[str] = field(default_factory=list)
    """The first files that would not go, each with why."""
    failures: int = 0

    def count(self, removal: Removal) -> None:
        """One file more."""
        kind = removal.kind
        self.files[kind] = self.files.get(kind, 0) + 1
        self.sizes[kind] = self.sizes.get(kind, 0) + (removal.size or 0)

    def fail(self, removal: Removal, reason: LakeError) -> None:
        """One that would not go."""
        self.failures += 1
        if len(self.failed) < _NAMED_FAILURES:
            self.failed.append(f"{removal.uri}: {reason}")
        _log.warning("cannot remove %s: %s", removal.uri, reason)

    @property
    def total(self) -> int:
        """How many files."""
        return sum(self.files.values())

    @property
    def bytes(self) -> int:
        """How many bytes, as far as metadata says."""
        return sum(self.sizes.values())

    def to_dict(self) -> dict[str, Any]:
        """The account as plain values."""
        return {
            "files": {str(kind): count for kind, count in sorted(self.files.items())},
            "bytes": self.bytes,
            "failures": self.failures,
            "failed": [*self.failed],
        }


class Deleter:
    """Removes files, or only counts them in a dry run; what is gone already is fine."""

    def __init__(
        self,
        handle: TableHandle,
        *,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
    ) -> None:
        self.deleted = Deleted()
        self._handle = handle
        self._dry_run = dry_run
        self._on_progress = on_progress

    def remove(self, removals: Iterable[Removal]) -> bool:
        """Remove each file, batch after batch; whether all went.

        When this returns nothing is under way any more: what must go later is removed with
        another call. Files that would not go stay, and are counted.
        """
        before, waiting = self.deleted.failures, iter(removals)
        while batch := list(islice(waiting, _BATCH)):
            outcomes = in_parallel(self._handle, self._remove, batch)
            for removal, reason in zip(batch, outcomes, strict=True):
                self._account(removal, reason)
        return self.deleted.failures == before

    def remove_now(self, removal: Removal) -> None:
        """Remove one file that others wait for; an error is raised."""
        if not self._dry_run:
            removal.storage.delete(removal.path)
        self._account(removal, None)

    def _remove(self, removal: Removal) -> LakeError | None:
        if self._dry_run:
            return None
        try:
            removal.storage.delete(removal.path)
        except LakeError as reason:
            return reason
        return None

    def _account(self, removal: Removal, reason: LakeError | None) -> None:
        if reason is not None:
            self.deleted.fail(removal, reason)
            return
        self.deleted.count(removal)
        _log.debug("removed %s: %s", removal.path, removal.reason)
        if self._on_progress is not None:
            self._on_progress(removal)

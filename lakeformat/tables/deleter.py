# SPDX-License-Identifier: Apache-2.0
"""Deletes files in parallel and counts them; an interrupted deletion can be repeated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from lakeformat.errors import LakeError
from lakeformat.tables.parallel import in_parallel
from lakeformat.tables.removal import FileClass, Removal
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence

__all__ = ["Deleted", "Deleter", "OnRemoval"]

_BATCH = 1_000
_NAMED_FAILURES = 100
_log = logging.getLogger(__name__)

OnRemoval: TypeAlias = Callable[[Removal], None]
"""Called with each deleted file; in a dry run, with each file that would be deleted."""


@dataclass(slots=True)
class Deleted:
    """The number of deleted files and their bytes, and the files that could not be deleted."""

    files: dict[FileClass, int] = field(default_factory=dict)
    sizes: dict[FileClass, int] = field(default_factory=dict)
    """The deleted bytes by kind of file; a file of unknown size counts as 0."""
    failed: list[str] = field(default_factory=list)
    """The URIs of the first files that could not be deleted, each with the reason."""
    failures: int = 0

    def count(self, removal: Removal) -> None:
        kind = removal.kind
        self.files[kind] = self.files.get(kind, 0) + 1
        self.sizes[kind] = self.sizes.get(kind, 0) + (removal.size or 0)

    def fail(self, removal: Removal, reason: LakeError, later: str) -> None:
        """Count and log one file that could not be deleted; ``later`` ends the log line."""
        self.failures += 1
        if len(self.failed) < _NAMED_FAILURES:
            self.failed.append(f"{removal.uri}: {reason}")
        _log.warning("could not delete %s: %s %s", removal.uri, sentence(reason), later)

    def plus(self, other: Deleted) -> Deleted:
        """Return the sum of both counts."""
        return Deleted(
            _sum(self.files, other.files),
            _sum(self.sizes, other.sizes),
            [*self.failed, *other.failed][:_NAMED_FAILURES],
            self.failures + other.failures,
        )

    @property
    def total(self) -> int:
        """The number of deleted files."""
        return sum(self.files.values())

    @property
    def bytes(self) -> int:
        """The deleted bytes; a file of unknown size counts as 0."""
        return sum(self.sizes.values())

    def line(self, *, dry_run: bool) -> str:
        """Return the numbers as one line, such as ``deleted 3 files of 2 MiB: 2 data files, 1
        manifest``. If no size is known, the line shows no size.
        """
        verb = "would delete" if dry_run else "deleted"
        kinds = ", ".join(kind.counted(count) for kind, count in sorted(self.files.items()))
        of = f" of {size(self.bytes)}" if self.bytes else ""
        return f"{verb} {counted(self.total, 'file')}{of}: {kinds}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a dict, ready for JSON."""
        return {
            "files": {str(kind): count for kind, count in sorted(self.files.items())},
            "bytes": self.bytes,
            "failures": self.failures,
            "failed": [*self.failed],
        }


def _sum(one: Mapping[FileClass, int], other: Mapping[FileClass, int]) -> dict[FileClass, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in {**one, **other}}


class Deleter:
    """Deletes files and counts them; in a dry run only counts them.

    A file that does not exist counts as deleted. ``threads`` is the number of parallel deletions;
    default: a multiple of the number of processors. ``later`` is a sentence for the warning about a
    file that could not be deleted: it names the operation that deletes the file later.
    """

    def __init__(
        self,
        threads: int | None = None,
        *,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
        later: str = "The next run tries again",
    ) -> None:
        self.deleted = Deleted()
        self._later = later
        self._threads = threads
        self._dry_run = dry_run
        self._on_progress = on_progress

    def remove(self, removals: Iterable[Removal]) -> bool:
        """Delete files in parallel; return False if a file could not be deleted. Failures are
        logged.

        All deletions have ended when this returns. To delete some files first, pass them in an
        earlier call.
        """
        before, waiting = self.deleted.failures, iter(removals)
        while batch := list(islice(waiting, _BATCH)):
            outcomes = in_parallel(self._remove, batch, self._threads)
            for removal, reason in zip(batch, outcomes, strict=True):
                self._account(removal, reason)
        return self.deleted.failures == before

    def remove_now(self, removal: Removal) -> None:
        """Delete one file. If that fails, raise the ``LakeError``, so that the caller stops."""
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
            self.deleted.fail(removal, reason, self._later)
            return
        self.deleted.count(removal)
        _log.debug("removed %s: %s", removal.path, removal.reason)
        if self._on_progress is not None:
            self._on_progress(removal)

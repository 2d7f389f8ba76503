# SPDX-License-Identifier: Apache-2.0
"""The arguments of a maintenance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.executor import Executor, where_to_work
from lakeformat.tables.compact_progress import CompactProgress
from lakeformat.tables.maintain.maintain_report import MaintainProgress
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.removal import Removal

__all__ = ["MaintainRequest", "OnProgress"]

OnProgress: TypeAlias = Callable[[MaintainProgress], None]
"""Called when each step begins, and after each unit of its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainRequest:
    """The arguments of a maintenance; table options decide everything else."""

    dry_run: bool = False
    expire_consumers: PastTime | None = None
    """Delete consumers without progress since this time, even if the table options keep them
    longer.

    Default: the table options decide.
    """
    executor: str | Executor | None = None
    on_progress: OnProgress | None = None
    commit_comes_first: bool = False
    """True for a step of a dry run if a step before it would make a commit."""

    progress: type[MaintainProgress] = MaintainProgress
    """The class of progress reports; it names the steps of the table format."""

    def check(self, now_millis: int) -> None:
        """Raise ``InvalidRequestError`` for a wrong argument; called before the first step."""
        where_to_work(self.executor)
        if self.on_progress is not None and not callable(self.on_progress):
            raise InvalidRequestError(
                f"on_progress must be a function that takes a MaintainProgress, got "
                f"{self.on_progress!r}: pass a function, or leave it out"
            )
        if self.expire_consumers is not None:
            past_millis("expire_consumers", self.expire_consumers, now_millis)

    def begins(self, table: str, step: str) -> None:
        """Report to ``on_progress`` that a step begins."""
        if self.on_progress is not None:
            self.on_progress(self.progress(table=table, step=step))

    def units(self, table: str, step: str) -> Callable[[CompactProgress], None] | None:
        """Return a function that passes the numbers of completed and planned units of a compaction
        to ``on_progress``.

        Return None without ``on_progress``.
        """
        if (listener := self.on_progress) is None:
            return None

        def heard(progress: CompactProgress) -> None:
            done, total = progress.done, progress.units
            listener(self.progress(table=table, step=step, done=done, total=total, unit="units"))

        return heard

    def removals(self, table: str, step: str) -> Callable[[Removal], None] | None:
        """Return a function that passes the number of deleted files of a step to ``on_progress``.

        Return None without ``on_progress``.
        """
        if (listener := self.on_progress) is None:
            return None
        count = 0

        def heard(_: Removal) -> None:
            nonlocal count
            count += 1
            listener(self.progress(table=table, step=step, done=count))

        return heard

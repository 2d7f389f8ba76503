# SPDX-License-Identifier: Apache-2.0
"""The table that is maintained, with its consumers."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.health import IcebergHealthReport, check_health
from lakeformat.iceberg.health.reasons import Cures
from lakeformat.iceberg.health.settings import HealthSettings, settings_of
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.past_time import PastTime

__all__ = ["Consumers", "Subject"]


class Consumers(Protocol):
    """The consumers of all branches of a table."""

    def list(self) -> Sequence[ConsumerState]:
        """Return every consumer with its progress."""

    def expire(self, older_than: PastTime, *, dry_run: bool) -> Sequence[ConsumerState]:
        """Delete the consumers without progress since a time, and return them."""

    def unread(self, without: Collection[ConsumerState] = ()) -> set[int]:
        """Return the ids of the snapshots that consumers have not read yet.

        The consumers in ``without`` are ignored.
        """


@dataclass(frozen=True, slots=True)
class Subject:
    """The table to maintain."""

    handle: TableHandle
    consumers: Consumers

    @property
    def argument(self) -> str:
        """The URI of the table, quoted for a command line."""
        return shlex.quote(self.handle.uri)

    @property
    def settings(self) -> HealthSettings:
        """The table properties that decide what is due."""
        return settings_of(self.handle.load().metadata.properties)

    def health(self, *, time_travel: bool = False) -> IcebergHealthReport:
        """Return the health report for the newest snapshot of the branch."""
        loaded = self.handle.load()
        head = loaded.metadata.references.get(self.handle.branch)
        return check_health(
            loaded,
            None if head is None else loaded.metadata.snapshot(head.snapshot_id),
            Cures(self.handle.uri),
            self.handle.environment.now_millis(),
            time_travel=time_travel,
        )

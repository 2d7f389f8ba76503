# SPDX-License-Identifier: Apache-2.0
"""The tables that are maintained, with their consumers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lakeformat.environment import Environment
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.health import IcebergHealthReport, check_health
from lakeformat.iceberg.health.reasons import Cures
from lakeformat.iceberg.health.settings import HealthSettings, settings_of
from lakeformat.iceberg.maintain.stalled import Consumers, find_stalled
from lakeformat.iceberg.orphans.lost_versions import lost_versions
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.time_travel import files_for_time_travel

__all__ = ["Maintained", "Subject"]


@dataclass(frozen=True, slots=True)
class Maintained(ABC):
    """A table to maintain: its handle, its consumers, and its health report."""

    handle: TableHandle
    consumers: Consumers

    kept_by: ClassVar[str]
    """The settings and references that keep snapshots, as text for ``note``."""

    @property
    def table(self) -> str:
        """The URI of the table."""
        return self.handle.uri

    @property
    def environment(self) -> Environment:
        """The clock, the sleep, the unique names and the random numbers of the table's
        operations.
        """
        return self.handle.environment

    @property
    def argument(self) -> str:
        """The table as an argument of a command: its name in the catalog, else its URI."""
        return self.handle.load().places.argument

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if the table cannot be changed."""
        self.handle.pointer.require_writable()

    def lost(self) -> str | None:
        """Return an explanation if metadata files newer than the current one may be lost.

        In this case no orphan file may be deleted. Otherwise return None.
        """
        return lost_versions(self.handle)

    @abstractmethod
    def health(self, *, time_travel: bool = False) -> IcebergHealthReport:
        """Return the health report of the newest state.

        With ``time_travel`` the report also counts the files that only older snapshots need.
        """

    def stalled(self, steps: Sequence[StepReport], request: MaintainRequest) -> dict[str, Reason]:
        """Return the problem of each stalled consumer, as ``find_stalled`` does."""
        now_millis = self.environment.now_millis()
        return find_stalled(self.consumers, self.argument, now_millis, steps, request)

    def note(
        self, health: IcebergHealthReport | None, steps: Sequence[StepReport], *, dry_run: bool
    ) -> str | None:
        """Return a sentence about files that only older snapshots need; None if there are none.

        It names the settings and references that keep these snapshots, and the command that deletes
        the files after the snapshots have expired.
        """
        storage = None if health is None else health.storage
        what = files_for_time_travel(storage, steps, dry_run=dry_run)
        if what is None:
            return None
        return (
            f"{what}: their snapshots are kept by {self.kept_by}. Once the snapshots have expired, "
            f"lake maintain {self.argument} deletes the files"
        )


@dataclass(frozen=True, slots=True)
class Subject(Maintained):
    """A branch of an Iceberg table."""

    kept_by = (
        "'history.expire.max-snapshot-age-ms', 'history.expire.min-snapshots-to-keep', tags and "
        "branches"
    )

    @property
    def settings(self) -> HealthSettings:
        """The table properties that decide what is due."""
        return settings_of(self.handle.load().metadata.properties)

    def health(self, *, time_travel: bool = False) -> IcebergHealthReport:
        """Return the health report of the newest snapshot of the branch."""
        loaded = self.handle.load()
        head = loaded.metadata.references.get(self.handle.branch)
        return check_health(
            loaded,
            None if head is None else loaded.metadata.snapshot(head.snapshot_id),
            Cures(loaded.places.catalog_name or loaded.places.uri),
            self.handle.environment.now_millis(),
            time_travel=time_travel,
        )

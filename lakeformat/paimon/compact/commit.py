# SPDX-License-Identifier: Apache-2.0
"""Publishes the results of a compaction's units of work, in groups of up to 16 units.

After a conflict, the units of a group are published one by one, so only the units in conflict are
lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeformat.errors import CommitConflictError, LakeError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.identity import CompactIdentity
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["Groups", "Made"]

GROUP_UNITS = 16
GROUP_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Made:
    """A unit that was run, with the messages to commit."""

    unit: CompactUnit
    messages: tuple[CommitMessage, ...]
    """One message.

    If postponed rows got their buckets: a message that removes their files, and a message for each
    bucket.
    """
    millis: int = 0


@dataclass(slots=True)
class Groups:
    """Collects the results of units, and publishes them when a group is full."""

    handle: TableHandle
    identity: CompactIdentity | None = None
    """The identity of the compaction's snapshots; None if the caller gave no ``commit``."""
    published: list[Made] = field(default_factory=list)
    refused: list[tuple[CompactUnit, LakeError]] = field(default_factory=list)
    """The units that conflict with another commit, each with the error; their new files are
    deleted.
    """
    snapshot_ids: list[int] = field(default_factory=list)
    tried: int = 0
    conflicts: int = 0
    millis: int = 0
    _waiting: list[Made] = field(default_factory=list)
    _bytes: int = 0

    def add(self, made: Made) -> None:
        """Add the result of a unit to the group, and publish the group if it is full."""
        self._waiting.append(made)
        self._bytes += made.unit.bytes
        if len(self._waiting) >= GROUP_UNITS or self._bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Publish the group; after a conflict publish each of its units alone."""
        group, self._waiting, self._bytes = self._waiting, [], 0
        if not group:
            return
        began = self.handle.environment.now_millis()
        try:
            with kept_if_published(lambda: self._give_up(group)):
                self._publish_group(group)
        finally:
            self.millis += self.handle.environment.now_millis() - began

    def give_up(self) -> None:
        """Delete the new files of the units that are not published."""
        group, self._waiting, self._bytes = self._waiting, [], 0
        self._give_up(group)

    def _publish_group(self, group: list[Made]) -> None:
        """Publish the units of a group together or, after a conflict, one by one.

        If an error is raised, ``group`` holds the units that are neither published nor refused.
        """
        error = self._publish(group)
        if error is None:
            return
        if len(group) == 1:
            self._refuse(group[0], error)
            return
        while group:
            if error := self._publish(group[:1]):
                self._refuse(group[0], error)
            del group[0]

    def _publish(self, group: Sequence[Made]) -> CommitConflictError | None:
        self.tried += 1
        messages = [message for made in group for message in made.messages]
        identity = self.identity
        earlier = None if identity is None else identity.next_commit()
        options = CommitOptions(commit=None if earlier is None else earlier.commit)
        try:
            report = commit_messages(self.handle, messages, options, earlier=earlier)
        except CommitConflictError as error:
            return self._conflict(error)
        if report.replayed:
            return self._conflict(
                CommitConflictError(
                    "another attempt of this compaction has published snapshot "
                    f"{report.snapshot_id} of {self.handle.uri} meanwhile; this bucket is planned "
                    "again"
                )
            )
        if identity is not None:
            identity.published(report.snapshot_id)
        if report.snapshot_id is not None:
            self.snapshot_ids.append(report.snapshot_id)
        self.published += group
        return None

    def _conflict(self, error: CommitConflictError) -> CommitConflictError:
        """Count a conflict, and return ``error`` unchanged.

        If the compaction has an identity, also search for snapshots of its other attempts: one of
        them may have caused the conflict.
        """
        self.conflicts += 1
        if self.identity is not None:
            self.identity.look()
        return error

    def _refuse(self, made: Made, error: CommitConflictError) -> None:
        delete_written(self.handle, made.messages)
        self.refused.append((made.unit, error))

    def _give_up(self, group: Sequence[Made]) -> None:
        delete_written(self.handle, [each for made in group for each in made.messages])

# SPDX-License-Identifier: Apache-2.0
"""Waits for a commit to a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.assets.change import ROW_KINDS, check_kinds
from airflow_provider_lake.sensors.conditions import (
    SnapshotAdvanced,
    at_least,
    check_position,
    to_millis,
)
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakeSnapshotSensor"]


class LakeSnapshotSensor(LakeTableSensor):
    """Waits until a table has a commit after a snapshot, or since a time; returns the facts of the
    new commits.

    By default the sensor waits for the first commit. Compactions and statistics count only if
    ``kinds`` names them. If the table was recreated, or a rollback removed the snapshot or
    position, the sensor returns the facts of the newest commit, with ``rewound`` true.

    :param after_snapshot: wait for a commit after the snapshot with this number
    :param after_position: instead of ``after_snapshot``: a position in the history of the table,
        such as ``"main/7"``
    :param since: count only commits at or after this time, such as ``"2024-01-31 10:00"`` (UTC
        unless it has a zone), or epoch milliseconds
    :param kinds: the kinds of commits that count: ``APPEND``, ``OVERWRITE``, ``COMPACT`` or
        ``ANALYZE``. Default: those that change rows, ``APPEND`` and ``OVERWRITE``
    :param changelog: report commits of any kind, but only those that published changelog rows.
        Only for Paimon tables
    """

    def __init__(
        self,
        *,
        after_snapshot: int = 0,
        after_position: str | None = None,
        since: str | int | datetime | None = None,
        kinds: Sequence[str] = ROW_KINDS,
        changelog: bool = False,
        **kwargs: Unpack[TableSensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.after_snapshot = after_snapshot
        self.after_position = after_position
        self.since = since
        self.kinds = kinds
        self.changelog = changelog
        self._check_arguments()

    def condition(self) -> SnapshotAdvanced:
        """Return the condition on commits. Raise ``ValueError`` for a wrong argument."""
        after: int | str = at_least(0, "after_snapshot", self.after_snapshot)
        if self.after_position is not None:
            if after:
                raise ValueError(
                    "arguments 'after_snapshot' and 'after_position' exclude each other: leave one "
                    "of them out"
                )
            after = check_position("after_position", self.after_position)
        return SnapshotAdvanced(
            after_snapshot=after,
            since_millis=0 if self.since is None else to_millis("since", self.since),
            kinds=check_kinds(self.kinds),
            changelog=self.changelog,
        )

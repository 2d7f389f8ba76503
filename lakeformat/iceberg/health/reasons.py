# SPDX-License-Identifier: Apache-2.0
"""The reasons why an Iceberg table is not healthy, each with advice."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from lakeformat.iceberg.health.health_report import (
    DataFileFacts,
    DeleteFacts,
    HistoryFacts,
    ManifestFacts,
    PartitionFacts,
)
from lakeformat.iceberg.health.live_files import ENOUGH_INPUT_FILES, MUCH_HIDDEN
from lakeformat.iceberg.health.settings import HealthSettings
from lakeformat.tables.health.score import BYTES_PART
from lakeformat.tables.health.verdict import Reason
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = [
    "Cures",
    "find_reasons",
    "has_costly_keys",
    "has_many_dangling",
    "has_many_small",
    "overdue_share",
]

_MUCH_KEYS = 0.1
"""Equality deletes are costly if their keys are more than this share of the table's rows.

Then it is cheaper to replace the deletes by positions than to compare the keys in each read.
"""
_MANY_DELETE_FILES = 10
_TOLERATED_SNAPSHOTS, _TOLERATED_PART = 10, 1.5


@dataclass(frozen=True, slots=True)
class Cures:
    """Makes the advice of each reason: a command line for one table."""

    table: str
    """The name or the location of the table, for commands."""

    def advice(self, command: str) -> str:
        """Return the command line ``lake <command> <table>``."""
        return f"lake {command} {shlex.quote(self.table)}"


def find_reasons(
    cures: Cures,
    settings: HealthSettings,
    files: DataFileFacts,
    worst: tuple[PartitionFacts, ...],
    deletes: DeleteFacts,
    manifests: ManifestFacts,
    snapshots: HistoryFacts,
) -> Iterator[Reason]:
    """Yield the reasons why a table with these numbers is not healthy."""
    yield from _of_small_files(cures, files, worst)
    yield from _of_deletes(cures, files, deletes)
    yield from _of_manifests(cures, settings, manifests)
    yield from _of_history(cures, settings, snapshots)


def overdue_share(settings: HealthSettings, snapshots: HistoryFacts) -> float:
    """Return the share of snapshots that should have expired, from 0 to 1.

    Return 0 if at most 10 snapshots, or at most a third of all snapshots, should have expired.
    Return 0 also if the property ``gc.enabled`` forbids expiry.
    """
    kept = snapshots.count - snapshots.overdue
    is_tolerated = (
        snapshots.overdue <= _TOLERATED_SNAPSHOTS or snapshots.count <= _TOLERATED_PART * kept
    )
    if is_tolerated or not settings.may_expire:
        return 0.0
    return snapshots.overdue / snapshots.count


def has_costly_keys(files: DataFileFacts, deletes: DeleteFacts) -> bool:
    """Return True if many equality keys or many equality delete files make reads slow."""
    is_much = deletes.equality_keys > _MUCH_KEYS * files.rows
    is_many = deletes.equality_delete_files >= _MANY_DELETE_FILES
    return deletes.equality_keys > 0 and (is_much or is_many)


def has_many_dangling(deletes: DeleteFacts) -> bool:
    """Return True if at least ``ENOUGH_INPUT_FILES`` delete files apply to no data file."""
    return deletes.dangling_files >= ENOUGH_INPUT_FILES


def has_many_small(settings: HealthSettings, manifests: ManifestFacts) -> bool:
    """Return True if there are so many small manifests that an append by Iceberg's Java library
    would merge them.
    """
    return manifests.small_manifests >= settings.manifests_to_merge


def _of_small_files(
    cures: Cures, files: DataFileFacts, worst: tuple[PartitionFacts, ...]
) -> Iterator[Reason]:
    if not files.partitions_due or not files.small_files:
        return
    most = ""
    if worst[0].partition and worst[0].small_files:
        most = (
            f"; partition {worst[0].partition} is the most urgent, with "
            f"{worst[0].small_files} of them"
        )
    are = "is" if files.small_files == 1 else "are"
    yield Reason(
        f"{files.small_files:,} of {counted(files.files, 'data file')}, with "
        f"{size(files.small_bytes)}, {are} smaller than {BYTES_PART:g} of the target size, "
        f"{size(files.target_file_size)}{most}",
        cures.advice("compact"),
    )


def _of_deletes(cures: Cures, files: DataFileFacts, deletes: DeleteFacts) -> Iterator[Reason]:
    if deletes.files_over_limit:
        yield Reason(
            f"{counted(deletes.files_over_limit, 'data file has', 'data files each have')} "
            f"at least {MUCH_HIDDEN:.0%} deleted rows",
            cures.advice("compact"),
        )
    if has_costly_keys(files, deletes):
        yield Reason(
            f"each read compares rows with {counted(deletes.equality_keys, 'key')} of "
            f"{counted(deletes.equality_delete_files, 'equality delete file')}",
            cures.advice("compact"),
        )
    if has_many_dangling(deletes):
        yield Reason(
            f"{counted(deletes.dangling_files, 'delete file applies', 'delete files apply')} to no "
            "data file any more",
            cures.advice("compact-deletes"),
        )


def _of_manifests(
    cures: Cures, settings: HealthSettings, manifests: ManifestFacts
) -> Iterator[Reason]:
    if has_many_small(settings, manifests):
        every = manifests.data_manifests + manifests.delete_manifests
        are = "is" if manifests.small_manifests == 1 else "are"
        yield Reason(
            f"{manifests.small_manifests:,} of {counted(every, 'manifest')} {are} smaller than "
            f"half of the target size, {size(settings.manifest_target_size)}; scan planning reads "
            "them",
            cures.advice("rewrite-manifests"),
        )


def _of_history(
    cures: Cures, settings: HealthSettings, snapshots: HistoryFacts
) -> Iterator[Reason]:
    if overdue_share(settings, snapshots):
        yield Reason(
            f"{snapshots.overdue:,} of {counted(snapshots.count, 'snapshot')} are beyond their "
            "retention, and keep their files",
            cures.advice("expire"),
        )
    strange = (snapshots.metadata_files or 0) - snapshots.logged_metadata_files
    if strange > settings.previous_metadata_files and settings.may_expire:
        yield Reason(
            f"{strange:,} of {counted(snapshots.metadata_files or 0, 'metadata file')} are no "
            "longer in the table's metadata log. By default, commits do not delete such files. If "
            "the table property write.metadata.delete-after-commit.enabled is true, a commit "
            "deletes the files that it drops from the log",
            cures.advice("orphans"),
        )

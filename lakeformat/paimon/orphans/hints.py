# SPDX-License-Identifier: Apache-2.0
"""Repairs LATEST and EARLIEST, and finds gaps in the numbers of snapshots and changelogs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.hints import NumberedFiles, numbered_changelogs, numbered_snapshots
from lakeformat.storage import Storage
from lakeformat.storage.base import TooLargeError
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["HintChange", "RepairHintsReport", "repair_hints"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HintChange:
    """A wrong hint file: its path, and its content before and after the repair."""

    path: str
    before: str | None
    """Content of the hint; None if the file does not exist."""
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairHintsReport(Report):
    """The wrong hints of a table and its branches, which a dry run only lists."""

    table: str
    dry_run: bool
    changes: tuple[HintChange, ...]
    gaps: tuple[str, ...]
    """The ranges of missing snapshots and changelogs between existing ones.

    Only a backup can restore the missing files.
    """
    reason: str
    """The outcome in one sentence, for the log."""


def repair_hints(handle: TableHandle, *, dry_run: bool) -> RepairHintsReport:
    """Set LATEST and EARLIEST of every branch to the numbers that a listing shows.

    Both hints exist once for snapshots and once for changelogs. A dry run only lists wrong hints.
    During a commit, a hint may be wrong for a moment; readers accept that.
    """
    storage, layout = handle.storage, handle.layout
    names = [MAIN_BRANCH, *(branch.name for branch in branches(storage, layout))]
    changes: list[HintChange] = []
    gaps: list[str] = []
    for branch in map(layout.on_branch, names):
        for files in (numbered_snapshots(storage, branch), numbered_changelogs(storage, branch)):
            changes += _repair(files, dry_run=dry_run)
            gaps += _gaps(files)
    done = "would be corrected" if dry_run else "corrected"
    return RepairHintsReport(
        table=handle.uri,
        dry_run=dry_run,
        changes=tuple(changes),
        gaps=tuple(gaps),
        reason=f"{counted(len(changes), 'hint')} {done}" if changes else "all hints are correct",
    )


def _repair(files: NumberedFiles, *, dry_run: bool) -> list[HintChange]:
    ids = files.ids()
    if not ids:
        return []
    found = []
    for name, number, write in (
        ("EARLIEST", ids[0], files.write_earliest_hint),
        ("LATEST", ids[-1], files.write_latest_hint),
    ):
        path = f"{files.directory}/{name}"
        before = _text(files.storage, path)
        if before == str(number):
            continue
        if not dry_run:
            write(number)
        found.append(HintChange(path=files.storage.uri(path), before=before, after=number))
    return found


def _gaps(files: NumberedFiles) -> list[str]:
    ids = files.ids()
    return [
        f"{files.storage.uri(files.directory)}: {files.prefix}{before + 1}"
        + (f" to {files.prefix}{after - 1}" if after > before + 2 else "")
        for before, after in pairwise(ids)
        if after > before + 1
    ]


def _text(storage: Storage, path: str) -> str | None:
    try:
        return storage.read(path).decode("ascii", errors="replace").strip()
    except NotFoundError:
        return None
    except TooLargeError:
        return ""

"""Puts a table's hints right, and says which snapshots are missing between others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.hints import NumberedFiles, numbered_changelogs, numbered_snapshots
from lakeformat.storage import Storage
from lakeformat.storage.base import TooLargeError
from lakeformat.types.count_text import counted

__all__ = ["HintChange", "RepairHintsReport", "repair_hints"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HintChange:
    """A hint that does not say what is there."""

    path: str
    before: str | None
    """What it says; None if there is no such file."""
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairHintsReport:
    """What was wrong with the hints of a table and its branches."""

    table: str
    dry_run: bool
    changes: tuple[HintChange, ...]
    gaps: tuple[str, ...]
    """Snapshots and changelogs that are missing between others; only a backup brings them back."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def repair_hints(handle: TableHandle, *, dry_run: bool) -> RepairHintsReport:
    """Let LATEST and EARLIEST of every branch say what a listing says.

    A commit that is faster leaves its own hint wrong for a moment, which every reader copes with.
    """
    storage, layout = handle.storage, handle.layout
    names = [MAIN_BRANCH, *(branch.name for branch in branches(storage, layout))]
    changes: list[HintChange] = []
    gaps: list[str] = []
    for branch in map(layout.on_branch, names):
        for files in (numbered_snapshots(storage, branch), numbered_changelogs(storage, branch)):
            changes += _repair(files, dry_run=dry_run)
            gaps += _gaps(files)
    done = "would be put right" if dry_run else "put right"
    return RepairHintsReport(
        table=handle.uri,
        dry_run=dry_run,
        changes=tuple(changes),
        gaps=tuple(gaps),
        reason=f"{counted(len(changes), 'hint')} {done}"
        if changes
        else "every hint says what is there",
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

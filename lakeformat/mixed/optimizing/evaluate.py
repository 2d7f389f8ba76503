# SPDX-License-Identifier: Apache-2.0
"""Decides, by Amoro's rules, if a partition is to be optimized, and how.

A *fragment* is a small file; in a table with a key, each file of inserts is a fragment, too. An
*undersized segment* is larger, but at most ``min_target_size``, by default 75 % of the target size.
A *minor* optimizing is due because of fragments and changes. A *major* one is due because
undersized segments together fill a file of the target size, or because files have many deleted
rows. Both merge fragments and changes. Both also merge undersized segments, if several of them are
in the same node (a hash bucket). A *full* optimizing rewrites the whole partition. With
``self-optimizing.full.rewrite-all-files=false`` it rewrites only changes, small files and files
with deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.types.count_text import counted

__all__ = [
    "DeleteKind",
    "FileUse",
    "LastRuns",
    "OptimizingType",
    "PartitionDecision",
    "PartitionFile",
    "PartitionFileDelete",
    "PendingFiles",
    "evaluate",
    "has_deletes_to_merge",
]


class OptimizingType(StrEnum):
    """The kinds of optimizing, the strongest last."""

    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"


class DeleteKind(StrEnum):
    """The kinds of deletes that apply to a file."""

    POSITION = "position"
    EQUALITY = "equality"
    """Deletes of keys, by Iceberg or by the change store."""


class FileUse(StrEnum):
    """The work that an optimizing does with a data file."""

    REWRITE = "rewrite"
    UNDERSIZED = "undersized"
    """Merged with other undersized segments of its node; a segment alone in its node is not
    rewritten.
    """
    DELETES = "deletes"
    """Not rewritten: the deletes of the file are merged into one position delete file."""
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class PartitionFileDelete:
    """A file of deletes that applies to a data file."""

    path: str
    kind: DeleteKind
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A data file of a partition with its deletes."""

    path: str
    is_change: bool
    """True for an insert of the change store."""
    size: int
    records: int
    deletes: tuple[PartitionFileDelete, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRuns:
    """The times of the newest optimizing runs, in epoch milliseconds; 0 if there was none."""

    minor: int = 0
    full: int = 0
    base_optimized: int = 0
    """The time of the newest merge of changes into the partition, or of its newest overwrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFiles:
    """The files of a partition that still need attention.

    A file above ``min_target_size`` is one of them only if its deletes need work, or if a full
    optimizing rewrites all files.
    """

    files: int
    bytes: int
    rows: int
    equality_rows: int
    """The number of keys in deletes of keys."""
    position_rows: int
    """The number of positions in position deletes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDecision:
    """The decision about one partition."""

    necessary: bool
    type: OptimizingType
    """The kind of optimizing that the partition would get."""
    cost: int
    """The estimated work in bytes."""
    uses: tuple[FileUse, ...]
    """The use of each file, in the order in which the files were given."""
    fragments: int
    undersized: int
    rewritten: int
    """The number of files to rewrite, without the fragments."""
    pending: PendingFiles
    """The files that still need attention, for the health score."""
    reason: str


@dataclass(slots=True)
class _Counts:
    """Counts and bytes of the files that an optimizing would touch."""

    fragments: int = 0
    fragment_bytes: int = 0
    rewritten: int = 0
    rewritten_bytes: int = 0
    undersized: int = 0
    undersized_sizes: list[int] = field(default_factory=list)
    with_deletes: int = 0
    with_deletes_bytes: int = 0
    several_positions: int = 0
    changes: int = 0
    deletes: dict[str, PartitionFileDelete] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    """The size of every counted file."""
    rows: int = 0

    @property
    def pending(self) -> PendingFiles:
        return PendingFiles(
            files=len(self.sizes),
            bytes=sum(self.sizes),
            rows=self.rows,
            equality_rows=self._deleted(DeleteKind.EQUALITY),
            position_rows=self._deleted(DeleteKind.POSITION),
        )

    def _deleted(self, kind: DeleteKind) -> int:
        return sum(each.records for each in self.deletes.values() if each.kind is kind)

    @property
    def equality_deletes(self) -> int:
        return sum(each.kind is DeleteKind.EQUALITY for each in self.deletes.values())


def evaluate(
    files: Sequence[PartitionFile],
    settings: OptimizingSettings,
    last: LastRuns,
    now_millis: int,
    *,
    keyed: bool = True,
) -> PartitionDecision:
    """Return the decision about a partition with these files; ``keyed`` is False for a table
    without a key.
    """
    rules = _Rules(settings, last, now_millis, keyed)
    counts = _Counts()
    uses = tuple(rules.add(each, counts) for each in files)
    is_full = rules.is_full and rules.full_is_necessary(counts)
    is_major = rules.major_is_necessary(counts)
    kind = OptimizingType.MAJOR if is_major else OptimizingType.MINOR
    minor = rules.minor_reason(counts)
    if rules.is_full:
        necessary = is_full
        kind = OptimizingType.FULL if is_full else kind
    elif rules.is_by_size:
        necessary = rules.sizes_are_uneven(counts)
    else:
        necessary = is_major or minor is not None
    return PartitionDecision(
        necessary=necessary,
        type=kind,
        cost=rules.cost(counts),
        uses=uses,
        fragments=counts.fragments,
        undersized=counts.undersized,
        rewritten=counts.rewritten,
        pending=counts.pending,
        reason=rules.reason(counts, necessary=necessary, kind=kind, minor=minor),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    settings: OptimizingSettings
    last: LastRuns
    now: int
    keyed: bool

    @property
    def is_by_size(self) -> bool:
        """True if only the sizes of files decide if an optimizing is due.

        This is so if ``size_tolerance`` is above 0 and the last minor optimizing is not older than
        ``fallback_interval``.
        """
        is_over = self._reached(self.settings.fallback_interval, self.last.minor)
        return self.settings.size_tolerance > 0 and not is_over

    def sizes_are_uneven(self, counts: _Counts) -> bool:
        """Return True if the files are too small on average, and undersized segments fill a file.

        A file lacks the bytes between its size and ``min_target_size``. The files are too small on
        average if the root mean square of the lacking bytes is at least ``size_tolerance``.
        """
        least = self.settings.min_target_size
        squares = sum(max(least - each, 0) ** 2 for each in counts.sizes)
        far = squares >= self.settings.size_tolerance**2 * max(len(counts.sizes), 1)
        return far and self.is_enough(counts)

    @property
    def is_full(self) -> bool:
        return self._reached(self.settings.full_interval, self.last.full)

    def _reached(self, interval: int, since: int) -> bool:
        return interval >= 0 and self.now - since > interval

    def is_fragment(self, file: PartitionFile) -> bool:
        return file.is_change or file.size <= self.settings.fragment_size

    def is_undersized(self, file: PartitionFile) -> bool:
        return not self.is_fragment(file) and file.size <= self.settings.min_target_size

    def add(self, file: PartitionFile, counts: _Counts) -> FileUse:
        use = self._use(file)
        if use is FileUse.KEEP:
            return use
        counts.changes += file.is_change
        counts.sizes.append(file.size)
        counts.rows += file.records
        counts.deletes.update((each.path, each) for each in file.deletes)
        if use is FileUse.UNDERSIZED:
            counts.undersized += 1
            counts.undersized_sizes.append(file.size)
        elif use is FileUse.DELETES:
            counts.with_deletes += 1
            counts.with_deletes_bytes += file.size
            counts.several_positions += len(_positions(file)) > 1
        elif self.is_fragment(file):
            counts.fragments += 1
            counts.fragment_bytes += file.size
        else:
            counts.rewritten += 1
            counts.rewritten_bytes += file.size
        return use

    def _use(self, file: PartitionFile) -> FileUse:
        if self._is_rewritten(file):
            return FileUse.REWRITE
        if self.is_fragment(file):
            return FileUse.KEEP
        if self.is_undersized(file):
            return FileUse.UNDERSIZED
        return FileUse.DELETES if has_deletes_to_merge(file, keyed=self.keyed) else FileUse.KEEP

    def _is_rewritten(self, file: PartitionFile) -> bool:
        if self.is_full:
            is_small = self.is_fragment(file) or self.is_undersized(file)
            return self.settings.full_rewrite_all or bool(file.deletes) or is_small
        if self.is_fragment(file):
            return True
        # Deletes of keys do not show how many rows of this file they delete.
        deleted = sum(each.records for each in _positions(file))
        return deleted > file.records * self.settings.duplicate_ratio

    def full_is_necessary(self, counts: _Counts) -> bool:
        if self.keyed:
            many = counts.fragments > self.settings.base_buckets
            return bool(counts.deletes) or many or counts.changes > 0
        return (
            bool(counts.deletes)
            or counts.fragments > 1
            or counts.undersized > 1
            or counts.rewritten > 0
            or counts.with_deletes > 0
        )

    def major_is_necessary(self, counts: _Counts) -> bool:
        return self.is_enough(counts) or counts.rewritten > 0

    def is_enough(self, counts: _Counts) -> bool:
        """Return True if the undersized segments together reach the target size of a file.

        The two smallest of them must also fit into one file.
        """
        target, sizes = self.settings.target_size, sorted(counts.undersized_sizes)
        return sum(sizes) >= target and len(sizes) > 1 and sum(sizes[:2]) <= target

    def minor_reason(self, counts: _Counts) -> str | None:
        small = counts.fragments + counts.equality_deletes
        found = counted(small, "fragment or delete", "fragments and deletes")
        due = self._reached(self.settings.minor_interval, self.last.minor)
        least = self.settings.minor_file_count
        if self.keyed:
            buckets = self.settings.base_buckets
            if small >= max(buckets + 1, least):
                return found
            if due and (small > buckets or counts.changes):
                return f"{found}, and the minor interval has passed"
            refresh = self._reached(self.settings.base_refresh_interval, self.last.base_optimized)
            return (
                "the refresh interval of the base store has passed"
                if refresh and counts.changes
                else None
            )
        if small >= least:
            return found
        if due and small > 1:
            return f"{found}, and the minor interval has passed"
        return "files with several position deletes" if counts.several_positions else None

    def cost(self, counts: _Counts) -> int:
        deletes = counts.deletes.values()
        undersized = sum(counts.undersized_sizes)
        read_and_written = counts.fragment_bytes + counts.rewritten_bytes + undersized
        files = counts.fragments + counts.rewritten + counts.undersized + counts.with_deletes
        return (
            2 * read_and_written
            + counts.with_deletes_bytes // 10
            + sum(each.size for each in deletes)
            + (files + len(counts.deletes)) * self.settings.open_file_cost
        )

    def reason(
        self, counts: _Counts, *, necessary: bool, kind: OptimizingType, minor: str | None
    ) -> str:
        if not necessary:
            return "nothing is due"
        if kind is OptimizingType.FULL:
            return "a full optimizing was requested, or its interval has passed"
        if kind is OptimizingType.MINOR:
            return minor or ""
        if counts.rewritten:
            return f"{counted(counts.rewritten, 'segment')} with many deleted rows"
        return f"{counts.undersized} undersized segments fill a file of the target size"


def has_deletes_to_merge(file: PartitionFile, *, keyed: bool) -> bool:
    """Return True if the deletes of ``file`` should be merged into one position delete file.

    ``file`` itself is not rewritten. ``keyed`` is False for a table without a key.
    """
    positions = _positions(file)
    if len(positions) > 1 or len(positions) < len(file.deletes):
        return True
    if keyed or not positions:
        return False
    # An optimizing names the positions of a file after it; other writers do not.
    data, deletes = (path.rpartition("/")[2] for path in (file.path, positions[0].path))
    return not deletes.startswith(f"{data.rpartition('.')[0]}-delete")


def _positions(file: PartitionFile) -> list[PartitionFileDelete]:
    return [each for each in file.deletes if each.kind is DeleteKind.POSITION]


def strongest(decisions: Iterable[PartitionDecision]) -> OptimizingType | None:
    """Return the strongest kind of optimizing that is necessary; None if none is necessary."""
    order = [*OptimizingType]
    found = [each.type for each in decisions if each.necessary]
    return max(found, key=order.index, default=None)

# SPDX-License-Identifier: Apache-2.0
"""Chooses the files of an append table that a compaction rewrites together, without any I/O.

``keyed_pick`` chooses for tables with a primary key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.types.count_text import counted

__all__ = ["AppendPick", "AppendSettings", "Deletions", "pick_queue", "pick_unordered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendSettings:
    """The table options by which files of append tables are chosen for a compaction."""

    target_bytes: int
    open_file_cost: int
    small_file_ratio: float = 0.7
    min_files: int = 5
    delete_ratio: float = 0.2
    rewrites_all: bool = False

    @classmethod
    def of_options(cls, options: TableOptions) -> AppendSettings:
        return cls(
            target_bytes=options.target_file_size_bytes,
            open_file_cost=options.source_split_open_file_cost_bytes,
            small_file_ratio=options.compaction_small_file_ratio,
            min_files=options.compaction_min_file_num,
            delete_ratio=options.compaction_delete_ratio_threshold,
            rewrites_all=options.compaction_force_rewrite_all_files,
        )

    @property
    def small_bytes(self) -> float:
        return self.target_bytes * self.small_file_ratio


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deletion vectors of the files of one bucket."""

    rows: Mapping[str, int] = field(default_factory=dict)
    """The number of deleted rows by data file name, for files that have a deletion vector."""
    index_file: Mapping[str, str] = field(default_factory=dict)
    """The name of the index file with the vector, by data file name.

    All data files of one index file are compacted together.
    """


@dataclass(frozen=True, slots=True)
class AppendPick:
    """Files that a compaction rewrites, in this order, into one or more larger files, and the
    reason.
    """

    files: tuple[DataFileMeta, ...]
    reason: str


def pick_unordered(
    files: Sequence[DataFileMeta],
    settings: AppendSettings,
    *,
    deletions: Deletions | None = None,
    full: bool = False,
) -> list[AppendPick]:
    """Return packs of files to rewrite, for a partition without buckets.

    First come the packs of files with deletion vectors, then packs of small files, the smallest
    files first. The last pack of small files needs ``compaction.min.file-num`` files or, with
    ``full``, two files. With ``full`` and ``compaction.force-rewrite-all-files``, the result is one
    pack of all files. ``deletions=None`` stands for no deletion vector.
    """
    vectors = deletions or Deletions()
    if full and settings.rewrites_all and files:
        return [AppendPick(tuple(_oldest_first(files)), "all files are rewritten")]
    picks = [*_with_deletions(files, settings, vectors)]
    plain = [
        file
        for file in files
        if file.file_name not in vectors.rows and _is_candidate(file, settings, vectors)
    ]
    plain.sort(key=lambda file: (file.file_size, file.file_name))
    pack: list[DataFileMeta] = []
    weight = 0
    for file in plain:
        pack.append(file)
        weight += file.file_size + settings.open_file_cost
        if len(pack) > 1 and weight >= 2 * settings.target_bytes:
            picks.append(AppendPick(tuple(pack), f"{len(pack)} small files fill a new one"))
            pack, weight = [], 0
    if len(pack) >= (2 if full else settings.min_files):
        picks.append(AppendPick(tuple(pack), f"{len(pack)} small files"))
    return picks


def pick_queue(
    files: Sequence[DataFileMeta],
    settings: AppendSettings,
    *,
    deletions: Deletions | None = None,
    full: bool = False,
) -> list[AppendPick]:
    """Return packs of adjacent files of a bucket, so that rows keep their order.

    With ``full`` and ``compaction.force-rewrite-all-files``, the result is one pack of all files.
    Otherwise, with ``full`` or if a file has many deleted rows, the result is at most one pack: all
    files from the first one that is small or has a deletion vector. Without ``full``, and if no
    file has many deleted rows, files with deletion vectors are left out of the packs.
    ``deletions=None`` stands for no deletion vector.
    """
    vectors = deletions or Deletions()
    queue = _oldest_first(files)
    if full and settings.rewrites_all and queue:
        return [AppendPick(tuple(queue), "all files are rewritten")]
    if full or any(_has_many_deletions(file, settings, vectors) for file in queue):
        return _behind_large_files(queue, settings, vectors)
    # Files with deletion vectors are compacted together, or not at all.
    runs = groupby(queue, key=lambda file: file.file_name in vectors.rows)
    return [
        AppendPick(tuple(pack), f"{len(pack)} adjacent files")
        for is_marked, run in runs
        if not is_marked
        for pack in _packs(run, settings)
    ]


def _packs(run: Iterable[DataFileMeta], settings: AppendSettings) -> Iterator[list[DataFileMeta]]:
    """Yield packs of adjacent files, oldest first, that ``_are_enough`` accepts.

    A pack is complete when it has the target size, when the next file is not small, or after the
    last file. If ``_are_enough`` rejects the complete pack, the next file is added to it; if no
    file is left, the pack is left out. When a pack reaches twice the target size, its oldest
    files are removed until it is smaller.
    """
    pack: list[DataFileMeta] = []
    size = 0
    for file in run:
        is_full = size >= settings.target_bytes or not _is_small(file, settings)
        if is_full and _are_enough(pack, size, settings):
            yield pack
            pack, size = [], 0
        pack.append(file)
        size += file.file_size
        while size >= 2 * settings.target_bytes:
            size -= pack.pop(0).file_size
    if _are_enough(pack, size, settings):
        yield pack


def _are_enough(pack: Sequence[DataFileMeta], size: int, settings: AppendSettings) -> bool:
    """Return True if ``pack`` (``size`` bytes) has enough files, and a rewrite leaves fewer files.

    If the number of files remained the same, every plan would pick the pack again.
    """
    return len(pack) >= settings.min_files and size // settings.target_bytes + 1 < len(pack)


def _behind_large_files(
    queue: list[DataFileMeta], settings: AppendSettings, vectors: Deletions
) -> list[AppendPick]:
    """Return at most one pack: all files from the first one that is small or has a deletion vector.

    The result is ``[]`` unless one of these files has a deletion vector, or there are at least
    three of them and most are small.
    """
    rest = list(queue)
    while rest and rest[0].file_name not in vectors.rows and not _is_small(rest[0], settings):
        del rest[0]
    marked = sum(file.file_name in vectors.rows for file in rest)
    if marked:
        have = "has" if marked == 1 else "have"
        return [AppendPick(tuple(rest), f"{marked} of {len(rest)} files {have} deleted rows")]
    small = sum(_is_small(file, settings) for file in rest)
    if len(rest) >= 3 and small > len(rest) - small:
        return [AppendPick(tuple(rest), f"{small} of {len(rest)} adjacent files are small")]
    return []


def _with_deletions(
    files: Sequence[DataFileMeta], settings: AppendSettings, vectors: Deletions
) -> list[AppendPick]:
    """Return a pack for each index file: the data files whose deletion vectors it has.

    Packs in which no file is small and no file has many deleted rows are left out.
    """
    together: dict[str, list[DataFileMeta]] = {}
    for file in _oldest_first(files):
        if file.file_name in vectors.rows:
            together.setdefault(vectors.index_file[file.file_name], []).append(file)
    return [
        AppendPick(tuple(pack), f"{counted(len(pack), 'file has', 'files have')} deleted rows")
        for pack in together.values()
        if any(_is_candidate(file, settings, vectors) for file in pack)
    ]


def _is_candidate(file: DataFileMeta, settings: AppendSettings, vectors: Deletions) -> bool:
    return _is_small(file, settings) or _has_many_deletions(file, settings, vectors)


def _is_small(file: DataFileMeta, settings: AppendSettings) -> bool:
    return file.file_size < settings.small_bytes


def _has_many_deletions(file: DataFileMeta, settings: AppendSettings, vectors: Deletions) -> bool:
    return vectors.rows.get(file.file_name, 0) > settings.delete_ratio * file.row_count


def _oldest_first(files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    return sorted(files, key=lambda file: (file.min_sequence_number, file.file_name))

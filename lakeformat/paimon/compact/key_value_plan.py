# SPDX-License-Identifier: Apache-2.0
"""Plans the compaction of one bucket of a primary-key table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeformat.files.file_format import format_of
from lakeformat.paimon.compact.keyed_pick import Pick, pick_all, pick_level_0, pick_universal
from lakeformat.paimon.compact.levels import Levels
from lakeformat.paimon.compact.settings import PickSettings
from lakeformat.paimon.compact.steps import Rewrite, Step, Upgrade, steps_of
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.looked_up import looks_up
from lakeformat.paimon.merge.sections import key_sections
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.types.count_text import counted

__all__ = ["plan_bucket"]


def plan_bucket(
    bucket: CompactUnit, handle: TableHandle, settings: PickSettings, *, full: bool
) -> list[CompactUnit] | str:
    """Return a list with the unit of a bucket, or a text with the reason why it needs no work.

    ``bucket`` is a unit with all files of the bucket. With ``full`` all rows are moved to the
    highest level.
    """
    levels = Levels.of_files((entry.file for entry in bucket.files), handle.options.level_count)
    planner = _BucketSteps(bucket, handle, levels)
    pick = _pick(levels, handle, settings, full=full)
    if pick is not None:
        return [planner.unit(planner.steps(pick), pick.output_level, pick.reason)]
    stale = [entry.file for entry in bucket.files if planner.is_stale(entry.file)] if full else []
    if stale:
        steps = [Rewrite((((file,),),)) for file in stale]
        return [
            planner.unit(
                steps, levels.max_level, f"{counted(len(stale), 'file is', 'files are')} rewritten"
            )
        ]
    if full:
        return f"all files are on level {levels.max_level} already"
    runs = counted(len(levels.runs), "sorted run")
    if len(levels.runs) >= settings.trigger:
        return f"the sizes of its {runs} need no compaction"
    others = ", nothing on level 0" if _takes_level_0(handle) else ""
    return f"{runs}{others}; a compaction starts at {settings.trigger}"


class _BucketSteps:
    """Decides which files of a bucket are rewritten, and which only change their level."""

    def __init__(self, bucket: CompactUnit, handle: TableHandle, levels: Levels) -> None:
        self._bucket, self._handle, self._levels = bucket, handle, levels
        ranges = [each for entry in bucket.vectors for each in entry.ranges or ()]
        self._marked = {each.data_file_name: each.cardinality or 0 for each in ranges}

    def is_stale(self, file: DataFileMeta) -> bool:
        """Return True if a compaction must rewrite the file instead of only changing its level.

        A full compaction also rewrites such a file on the highest level.
        """
        forced = self._handle.options.compaction_force_rewrite_all_files
        return forced or file.file_name in self._marked

    def steps(self, pick: Pick) -> list[Step]:
        """Return the steps for the picked runs; a file on the output level needs none, unless it
        must be rewritten.
        """
        options = self._handle.options.of_level(pick.output_level)
        picked = {file.file_name for run in pick.runs for file in run.files}
        # In commit order, as in scans. So a scan and a compaction keep the same one of two equal
        # rows.
        files = [each.file for each in self._bucket.files if each.file.file_name in picked]
        key_types = [field.type for field in self._handle.schema.key_fields]
        sections = [
            tuple(tuple(files[at] for at in run) for run in section)
            for section in key_sections(files, key_types)
        ]
        is_last = pick.output_level == self._levels.max_level

        def must_rewrite(file: DataFileMeta) -> bool:
            stored = format_of(file.file_name, file.file_name)
            # None: the writer did not count them
            has_retracts = is_last and file.delete_row_count != 0
            return (
                has_retracts
                or self.is_stale(file)
                or stored.value != options.file_format
                or (file.level == 0 and self._is_looked_up(file, is_last=is_last))
            )

        small = int(options.target_file_size_bytes * options.compaction_small_file_ratio)
        steps = steps_of(sections, small_bytes=small, must_rewrite=must_rewrite)
        return [
            step
            for step in steps
            if not isinstance(step, Upgrade) or step.file.level != pick.output_level
        ]

    def _is_looked_up(self, file: DataFileMeta, *, is_last: bool) -> bool:
        """Return True if the table looks up old rows, and the merge with them may change or drop a
        row of ``file``, so that this file of level 0 must be rewritten.

        ``is_last`` is True if the output level is the highest level.
        """
        options = self._handle.options
        if not looks_up(options):
            return False
        if options.deletion_vectors_enabled and file.delete_row_count != 0:
            return True
        if options.merge_engine == "deduplicate" and not options.sequence_field:
            return False
        # Other engines may change a row that is alone in its key.
        return not (is_last and options.merge_engine in ("deduplicate", "first-row"))

    def _above(self, output_level: int) -> tuple[ManifestEntry, ...]:
        if not looks_up(self._handle.options):
            return ()
        return tuple(each for each in self._bucket.files if each.file.level > output_level)

    def unit(self, steps: Sequence[Step], output_level: int, reason: str) -> CompactUnit:
        """Return the unit with ``steps`` and only the files that a step changes."""
        touched = {file.file_name for step in steps for file in _files(step)}
        target = self._handle.options.of_level(output_level).target_file_size_bytes
        return replace(
            self._bucket,
            files=tuple(each for each in self._bucket.files if each.file.file_name in touched),
            steps=tuple(steps),
            output_level=output_level,
            drop_delete=output_level > 0
            and (
                output_level >= self._levels.highest
                or self._handle.options.deletion_vectors_enabled
            ),
            is_last=output_level == self._levels.max_level,
            looked_up=self._above(output_level),
            marked_elsewhere=frozenset(
                name
                for each in self._bucket.files
                if (name := each.file.file_name) in self._marked and name not in touched
            ),
            deleted_rows=sum(self._marked.get(name, 0) for name in touched),
            expected_files=sum(_files_of(step, target) for step in steps),
            reason=reason,
        )


def _pick(
    levels: Levels, handle: TableHandle, settings: PickSettings, *, full: bool
) -> Pick | None:
    if full:
        return pick_all(levels)
    if _takes_level_0(handle):
        return pick_level_0(levels, settings)
    return pick_universal(levels, settings)


def _takes_level_0(handle: TableHandle) -> bool:
    return handle.options.compaction_force_up_level_0 or looks_up(handle.options)


def _files(step: Step) -> list[DataFileMeta]:
    return [step.file] if isinstance(step, Upgrade) else step.files


def _files_of(step: Step, target: int) -> int:
    size = sum(file.file_size for file in _files(step))
    return 1 if isinstance(step, Upgrade) else max(-(-size // max(target, 1)), 1)

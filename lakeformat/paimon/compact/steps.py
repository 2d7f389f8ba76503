# SPDX-License-Identifier: Apache-2.0
"""The steps of a unit: merge and rewrite some files, or move one file unchanged to another
level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta

__all__ = ["FileRuns", "Rewrite", "Step", "Upgrade", "steps_of"]

FileRuns: TypeAlias = tuple[tuple[DataFileMeta, ...], ...]
"""The sorted runs of a section, oldest first.

In a primary-key table, a section is a group of files with overlapping key ranges. No file outside
of the group overlaps them.
"""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A step for a file that only changes its level: a new manifest entry, and no new data file."""

    file: DataFileMeta


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A step for sections whose rows are merged and written to new files, one section after the
    other.
    """

    sections: tuple[FileRuns, ...]

    @property
    def files(self) -> list[DataFileMeta]:
        return [file for section in self.sections for run in section for file in run]


Step: TypeAlias = Upgrade | Rewrite


def steps_of(
    sections: Sequence[FileRuns],
    *,
    small_bytes: int,
    must_rewrite: Callable[[DataFileMeta], bool],
) -> list[Step]:
    """Return the steps for sections, which are given in key order.

    Each section has the sorted runs of one key range; the key ranges of two sections do not
    overlap. The files of a section with several runs are merged. In a section with one run, a file
    below ``small_bytes`` is rewritten if it is next to another small file or to a merged section.
    Any other file only changes its level, unless ``must_rewrite`` returns True for it.
    """
    steps: list[Step] = []
    waiting: list[FileRuns] = []

    def flush() -> None:
        if _is_one_file(waiting):
            steps.append(_alone(waiting[0][0][0], must_rewrite))
        elif waiting:
            steps.append(Rewrite(tuple(waiting)))
        waiting.clear()

    for section in sections:
        if len(section) > 1:
            waiting.append(section)
            continue
        for file in section[0]:
            if file.file_size < small_bytes:
                waiting.append(((file,),))
            else:
                flush()
                steps.append(_alone(file, must_rewrite))
    flush()
    return list(_joined(steps))


def _alone(file: DataFileMeta, must_rewrite: Callable[[DataFileMeta], bool]) -> Step:
    return Rewrite((((file,),),)) if must_rewrite(file) else Upgrade(file)


def _is_one_file(sections: Sequence[FileRuns]) -> bool:
    return len(sections) == 1 and len(sections[0]) == 1 and len(sections[0][0]) == 1


def _joined(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps, with adjacent rewrites joined into one.

    So an output file may have rows of several rewrites.
    """
    waiting: list[FileRuns] = []
    for step in steps:
        if isinstance(step, Rewrite):
            waiting += step.sections
            continue
        if waiting:
            yield Rewrite(tuple(waiting))
            waiting = []
        yield step
    if waiting:
        yield Rewrite(tuple(waiting))

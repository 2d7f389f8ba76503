"""The step for each file of a unit, as pictures: sections in the order of their keys.

``10,20/5`` is a section of two runs that overlap, the first of two files; a file is small below 50.
``!`` behind a size: the file cannot be moved as it is.
"""

from __future__ import annotations

import pytest

from lakeformat.paimon.compact.steps import FileRuns, Upgrade, steps_of
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta


def file(said: str, number: int) -> DataFileMeta:
    return DataFileMeta(
        file_name=f"{number}:{said}",
        file_size=int(said.rstrip("!")),
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )


def sections(picture: str) -> list[FileRuns]:
    return [
        tuple(
            tuple(file(said, number) for number, said in enumerate(run.split(",")))
            for run in section.split("/")
        )
        for section in picture.split()
    ]


def shown(picture: str) -> str:
    """``[…]`` is rewritten, ``^`` moved."""
    steps = steps_of(
        sections(picture), small_bytes=50, must_rewrite=lambda found: found.file_name.endswith("!")
    )
    words = []
    for step in steps:
        names = (
            [step.file.file_name]
            if isinstance(step, Upgrade)
            else [f.file_name for f in step.files]
        )
        said = " ".join(name.partition(":")[2] for name in names)
        words.append(f"^{said}" if isinstance(step, Upgrade) else f"[{said}]")
    return " ".join(words)


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("", ""),
        # A file that overlaps nothing costs no bytes, a small one neither if it is alone.
        ("100 200", "^100 ^200"),
        ("10", "^10"),
        ("100 10 200", "^100 ^10 ^200"),
        # Small neighbours are written together; large files part them.
        ("10 20 30", "[10 20 30]"),
        ("10 20 100 30", "[10 20] ^100 ^30"),
        # What overlaps is merged, with the small files beside it.
        ("100/100", "[100 100]"),
        ("100,200/5 10", "[100 200 5 10]"),
        ("10 100/100 20 100", "[10 100 100 20] ^100"),
        ("100/100 200/200", "[100 100 200 200]"),
        # What cannot be moved is rewritten, and files are filled up across it.
        ("100!", "[100!]"),
        ("10!", "[10!]"),
        ("100 100! 100", "^100 [100!] ^100"),
        ("100! 100! 100", "[100! 100!] ^100"),
        ("10 20 100! 30", "[10 20 100!] ^30"),
        ("100/100 100! 10 10", "[100 100 100! 10 10]"),
    ],
)
def test_large_files_move_and_small_neighbours_are_written_together(picture, expected):
    assert shown(picture) == expected

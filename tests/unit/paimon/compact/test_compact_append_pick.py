"""The files of an append table to rewrite, as pictures: sizes of files, oldest first.

The target is 100 bytes: a file is small below 70. ``30-9`` has 30 bytes and 9 of its 10 rows are
deleted.
"""

from __future__ import annotations

import pytest

from lakeformat.paimon.compact.append_pick import (
    AppendPick,
    AppendSettings,
    Deletions,
    pick_queue,
    pick_unordered,
)
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions

ROWS = 10


def settings(**given: object) -> AppendSettings:
    return AppendSettings(**{"target_bytes": 100, "open_file_cost": 4, "min_files": 5, **given})


def files(picture: str) -> list[DataFileMeta]:
    return [
        DataFileMeta(
            file_name=f"{number}:{said}",
            file_size=int(said.partition("-")[0]),
            row_count=ROWS,
            min_sequence_number=number * ROWS,
            max_sequence_number=number * ROWS + ROWS - 1,
            schema_id=0,
        )
        for number, said in enumerate(picture.split())
    ]


def deletions(picture: str, *, index_files: str = "") -> Deletions:
    """Files with deleted rows share an index file, unless letters name separate ones."""
    deleted = {
        file.file_name: int(file.file_name.partition("-")[2])
        for file in files(picture)
        if "-" in file.file_name
    }
    letters = index_files or "a" * len(deleted)
    return Deletions(deleted, dict(zip(deleted, letters, strict=True)))


def shown(*picks: AppendPick) -> str:
    packs = [" ".join(file.file_name.partition(":")[2] for file in pick.files) for pick in picks]
    return " | ".join(packs) or "nothing"


@pytest.mark.parametrize(
    ("picture", "minor", "full"),
    [
        ("", "nothing", "nothing"),
        ("10", "nothing", "nothing"),
        ("10 20", "nothing", "10 20"),
        ("100 70 90", "nothing", "nothing"),
        # Smallest first, large ones left out.
        ("30 10 100 20 50 40", "10 20 30 40 50", "10 20 30 40 50"),
        # A pack is full once it is worth two files; the remaining files wait for more.
        ("65 65 65 65 1", "1 65 65 65", "1 65 65 65"),
        ("60 60 60 60 60 60 60 60", "60 60 60 60 | 60 60 60 60", "60 60 60 60 | 60 60 60 60"),
        # Even empty files weigh what it costs to open them.
        (" ".join(["0"] * 52), f"{' '.join(['0'] * 50)}", f"{' '.join(['0'] * 50)} | 0 0"),
    ],
)
def test_small_files_without_an_order(picture, minor, full):
    assert shown(*pick_unordered(files(picture), settings())) == minor
    assert shown(*pick_unordered(files(picture), settings(), full=True)) == full


@pytest.mark.parametrize(
    ("picture", "index_files", "expected"),
    [
        # Two of ten rows are not worth it; three are, also in a large file.
        ("100-2 100", "", "nothing"),
        ("100-3 100", "", "100-3"),
        # Whatever shares an index file with it comes along, other index files stay.
        ("100-3 100-1 100 100-1", "aab", "100-3 100-1"),
        ("50-1 100-1", "ab", "50-1"),
        # Small files without deleted rows are a pack of their own.
        ("100-9 10 10 10 10 10", "", "100-9 | 10 10 10 10 10"),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_deleted_rows_of_files_without_an_order(picture, index_files, expected, full):
    found = pick_unordered(
        files(picture), settings(), deletions=deletions(picture, index_files=index_files), full=full
    )
    assert shown(*found) == expected


@pytest.mark.parametrize(
    ("picture", "minor", "full"),
    [
        ("", "nothing", "nothing"),
        ("1 2 3 4", "nothing", "1 2 3 4"),
        ("1 2", "nothing", "nothing"),
        # In their order, not the smallest first, and all there are: no further round is due.
        ("9 1 2 3 4 5", "9 1 2 3 4 5", "9 1 2 3 4 5"),
        # Up to the target size, then the next ones; the last pack may be too few.
        (
            "20 20 20 20 20 20 20 20 20 20 20",
            "20 20 20 20 20 | 20 20 20 20 20",
            " ".join(["20"] * 11),
        ),
        ("9 9 9 9 9 80 9 9 9", "9 9 9 9 9", "9 9 9 9 9 80 9 9 9"),
        # Where that is worth two files the oldest ones are left out.
        ("150 90 10 10 10 10", "90 10 10 10 10", "10 10 10 10"),
        # Large files stay; but in between they go along if more than half of all is small.
        ("70 100 10 20 30", "nothing", "10 20 30"),
        ("100 10 100 20 30", "nothing", "10 100 20 30"),
        ("100 10 100 100 30", "nothing", "nothing"),
    ],
)
def test_adjacent_files_of_a_bucket_with_an_order(picture, minor, full):
    assert shown(*pick_queue(files(picture), settings())) == minor
    assert shown(*pick_queue(files(picture), settings(), full=True)) == full


def test_files_that_would_be_as_many_again_are_left_alone():
    """Three of 50 bytes are two files afterwards; two of 60 are two again, for ever."""
    assert shown(*pick_queue(files("60 60"), settings(min_files=2))) == "nothing"
    assert shown(*pick_queue(files("40 50"), settings(min_files=2))) == "40 50"
    assert shown(*pick_queue(files("50 50 50"), settings(min_files=3))) == "50 50 50"
    # The third file makes three of them two.
    assert shown(*pick_queue(files("60 60 10"), settings(min_files=2))) == "60 60 10"


@pytest.mark.parametrize(
    ("picture", "minor", "full"),
    [
        # All files with deleted rows are compacted together, or none: one index file names them.
        ("100 100-3 100 100-1", "100-3 100 100-1", "100-3 100 100-1"),
        ("100-1 10", "nothing", "100-1 10"),
        # Minor compaction does not reach over a file whose deleted rows are few.
        ("1 1 1 100-1 1 1 1", "nothing", "1 1 1 100-1 1 1 1"),
        ("100-1 1 1 1 1 1", "1 1 1 1 1", "100-1 1 1 1 1 1"),
    ],
)
def test_deleted_rows_of_a_bucket_with_an_order(picture, minor, full):
    marked = deletions(picture)
    assert shown(*pick_queue(files(picture), settings(), deletions=marked)) == minor
    assert shown(*pick_queue(files(picture), settings(), deletions=marked, full=True)) == full


def test_a_large_file_with_one_deleted_row_is_rewritten_only_with_the_threshold_0():
    marked = deletions("100 100-1")
    for threshold, expected in ((0.2, "nothing"), (0, "100-1")):
        limits = settings(delete_ratio=threshold)
        found = pick_unordered(files("100 100-1"), limits, deletions=marked, full=True)
        assert shown(*found) == expected


def test_everything_is_rewritten_if_that_is_asked_for():
    forced = settings(rewrites_all=True)
    assert shown(*pick_queue(files("100 100"), forced, full=True)) == "100 100"
    assert shown(*pick_unordered(files("100 100"), forced, full=True)) == "100 100"
    assert shown(*pick_queue(files("100 100"), forced)) == "nothing"
    assert shown(*pick_unordered(files("100 100"), forced)) == "nothing"


def test_settings_come_from_the_options_of_the_table():
    found = AppendSettings.of_options(
        TableOptions(
            {
                "target-file-size": "1 kb",
                "source.split.open-file-cost": "2 b",
                "compaction.small-file-ratio": "0.5",
                "compaction.min.file-num": "3",
                "compaction.delete-ratio-threshold": "0.1",
                "compaction.force-rewrite-all-files": "true",
            }
        )
    )
    assert found == AppendSettings(
        target_bytes=1024,
        open_file_cost=2,
        small_file_ratio=0.5,
        min_files=3,
        delete_ratio=0.1,
        rewrites_all=True,
    )
    assert found.small_bytes == 512

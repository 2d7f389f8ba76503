"""The runs to compact, as pictures: ``level:size`` of each run, newest first."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lakeformat.paimon.compact.keyed_pick import Pick, pick_all, pick_level_0, pick_universal
from lakeformat.paimon.compact.levels import Levels
from lakeformat.paimon.compact.settings import PickSettings
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions

NOW = datetime(2026, 1, 1, 12)
LEVELS = 6


def levels(picture: str, *, made: datetime | None = None) -> Levels:
    """``"0:10 0:20 5:100"`` are two files of level 0, the newer one of 10 bytes, and a run."""
    runs = [tuple(map(int, run.split(":"))) for run in picture.split()]
    files = [
        DataFileMeta(
            file_name=f"{number}",
            file_size=size,
            row_count=1,
            min_sequence_number=1000 - number,
            max_sequence_number=1000 - number,
            schema_id=0,
            level=level,
            creation_time=made,
        )
        for number, (level, size) in enumerate(runs)
    ]
    return Levels.of_files(files, LEVELS)


def settings(**given: int) -> PickSettings:
    return PickSettings(now=NOW, **given)


def shown(pick: Pick | None) -> str:
    if pick is None:
        return "nothing"
    return f"{' '.join(f'{run.level}:{run.size}' for run in pick.runs)} -> {pick.output_level}"


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("", "nothing"),
        ("5:100", "nothing"),
        ("0:1 0:1 0:1 0:1", "nothing"),
        # The others are larger than twice the last one.
        ("0:1 0:1 0:1 0:1 0:1", "0:1 0:1 0:1 0:1 0:1 -> 5"),
        ("0:1 2:1 3:1 4:1 5:2", "0:1 2:1 3:1 4:1 5:2 -> 5"),
        ("0:1 0:1 0:1 0:2 5:2", "0:1 0:1 0:1 0:2 5:2 -> 5"),
        # Of similar size: up to the one that is larger than all before it.
        ("0:1 0:1 0:1 0:1 5:100", "0:1 0:1 0:1 0:1 -> 4"),
        ("0:1 0:1 0:1 3:3 5:100", "0:1 0:1 0:1 3:3 -> 4"),
        ("0:1 0:1 0:1 3:9 5:100", "0:1 0:1 0:1 -> 2"),
        # A run of level 0 or 1 that is too large is taken once another one has been.
        ("0:1 0:1 0:9 3:90 5:100", "0:1 0:1 0:9 -> 2"),
        ("0:1 0:9 0:9 3:90 5:100", "nothing"),
        # Nothing ends at level 0: the run that follows is taken too, and gives its level.
        ("0:1 0:1 0:1 1:900 5:1000", "0:1 0:1 0:1 1:900 -> 4"),
        ("0:1 0:2 0:4 0:8 0:16 5:100", "0:1 0:2 0:4 0:8 0:16 5:100 -> 5"),
        ("0:1 2:5 3:25 4:125 5:600", "nothing"),
        # Too many runs: the surplus and one more, whatever their sizes.
        ("0:1 1:5 2:25 3:125 4:600 5:3000", "0:1 1:5 -> 1"),
    ],
)
def test_runs_are_picked_by_their_sizes_and_their_number(picture, expected):
    assert shown(pick_universal(levels(picture), settings())) == expected


def test_a_trigger_of_its_own():
    assert shown(pick_universal(levels("0:1 0:1"), settings(trigger=2))) == "0:1 0:1 -> 5"
    assert pick_universal(levels("0:1 0:1"), settings(trigger=3)) is None


def test_a_size_ratio_takes_larger_runs_in():
    picture = "0:10 2:15 3:200 4:300 5:600"
    assert pick_universal(levels(picture), settings()) is None
    assert shown(pick_universal(levels(picture), settings(size_ratio=50))) == "0:10 2:15 -> 2"


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("", "nothing"),
        ("3:10 5:100", "nothing"),
        ("0:1", "0:1 -> 5"),
        ("0:1 5:100", "0:1 -> 4"),
        ("0:1 0:1 5:100", "0:1 0:1 -> 4"),
        ("0:1 4:50 5:100", "0:1 -> 3"),
        ("0:1 1:50 5:100", "0:1 1:50 -> 1"),
        ("0:60 4:50 5:1000", "0:60 4:50 -> 4"),
    ],
)
def test_tables_that_look_rows_up_take_all_of_level_0(picture, expected):
    assert shown(pick_level_0(levels(picture), settings())) == expected


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("", "nothing"),
        ("5:100", "nothing"),
        ("0:1", "0:1 -> 5"),
        ("0:1 3:10 5:100", "0:1 3:10 5:100 -> 5"),
    ],
)
def test_a_full_compaction_takes_everything(picture, expected):
    assert shown(pick_all(levels(picture))) == expected


class TestEarlyFullCompaction:
    """Options that ask for a full compaction before size and number do."""

    HOUR = 3_600_000

    def test_after_an_interval(self):
        options = settings(optimization_interval_millis=self.HOUR)
        just_done = levels("0:1 5:100", made=NOW - timedelta(minutes=59))
        due = levels("0:1 5:100", made=NOW - timedelta(minutes=61))
        assert pick_universal(just_done, options) is None
        assert shown(pick_universal(due, options)) == "0:1 5:100 -> 5"

    def test_of_a_bucket_that_never_had_one(self):
        options = settings(optimization_interval_millis=self.HOUR)
        assert shown(pick_universal(levels("0:1 0:1"), options)) == "0:1 0:1 -> 5"

    def test_of_a_small_bucket(self):
        assert shown(pick_universal(levels("0:1 5:98"), settings(total_size_threshold=100)))
        assert pick_universal(levels("0:1 5:99"), settings(total_size_threshold=100)) is None

    def test_of_much_outside_the_highest_level(self):
        options = settings(incremental_size_threshold=50)
        assert shown(pick_universal(levels("0:51 5:999"), options)) == "0:51 5:999 -> 5"
        assert pick_universal(levels("0:50 5:999"), options) is None

    def test_never_of_a_single_run(self):
        assert pick_universal(levels("5:1"), settings(total_size_threshold=100)) is None


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [(1, 3, {1, 2}), (22, 2, {22, 23, 0, 1}), (-1, 3, set()), (4, 4, set())],
)
def test_off_peak_hours_add_to_the_size_ratio(start, end, hours):
    options = TableOptions(
        {
            "compaction.offpeak.start.hour": f"{start}",
            "compaction.offpeak.end.hour": f"{end}",
            "compaction.offpeak-ratio": "40",
        }
    )
    ratios = {
        hour: PickSettings.of_options(options, NOW.replace(hour=hour)).size_ratio
        for hour in range(24)
    }
    assert {hour for hour, ratio in ratios.items() if ratio == 41} == hours


def test_runs_of_level_0_are_ordered_by_their_sequence_numbers():
    files = [
        DataFileMeta(
            file_name=name,
            file_size=1,
            row_count=1,
            min_sequence_number=low,
            max_sequence_number=high,
            schema_id=0,
        )
        for name, low, high in [("old", 0, 4), ("late", 2, 9), ("wide", 0, 9)]
    ]
    assert [run.files[0].file_name for run in Levels.of_files(files, 6).runs] == [
        "wide",
        "late",
        "old",
    ]


def test_a_level_above_the_configured_ones_counts():
    assert levels("7:10").max_level == 7

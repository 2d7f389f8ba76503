"""The comparison of compactions with Java's: the work of this library, and the report."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import iceberg_compact_peer
from benchmarks.harness import UnequalAnswersError
from benchmarks.iceberg_compact_peer import CASES, check_order, main, make_table
from benchmarks.iceberg_compact_report import MeasuredCase, Turn, compact_report
from benchmarks.small_files import opened, sums


@pytest.mark.parametrize("name", CASES)
def test_our_compaction_leaves_one_file_with_the_rows_of_the_table(name, tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_compact_peer, "FILE_ROWS", 1000)
    case = CASES[name]
    make_table(tmp_path / "made", case, 3)
    table = opened(tmp_path / "made")
    before = sums(table.scan().to_batches())
    report = table.compact(strategy="full", **case.ours)
    assert (report.files_in, report.files_out) == (3, 1)
    assert sums(table.scan().to_batches()) == before
    assert (report.rows_in > before[0]) == (case.deleted is not None)


def test_results_in_another_order_are_refused():
    rows, others = pa.table({"k": [1, 2]}), pa.table({"k": [2, 1]})
    check_order("sort", ((2, 3, 0), rows), ((2, 3, 0), rows))
    for found in (((2, 3, 0), others), ((2, 4, 0), rows)):
        with pytest.raises(
            UnequalAnswersError, match=r"sort: compact\(\).* leaves? .* nothing was measured"
        ):
            check_order("sort", ((2, 3, 0), rows), found)


def test_the_report_has_the_ratio_of_each_case_and_names_the_target_that_was_missed():
    fast = MeasuredCase("copied", 5, 93_000_000, [30.0], [Turn(0.5, 6.0, 1.0), Turn(0.5, 5.0, 3.0)])
    slow = MeasuredCase("deletes", 3, 93_000_000, [30.0], [Turn(2.0, 5.0, 2.0)])
    report = compact_report([fast, slow], "--rounds 2")
    assert "| copied | 93 | 0.50 (0.50–0.50) | 186 | 30.0 |" in report
    assert "| 11.0 (10.0–12.0) | 5, reached |" in report
    assert "| 2.5 (2.5–2.5) | 3, **missed** |" in report
    assert "load was 2.0 (1.0–3.0)" in report
    assert "python -m benchmarks.iceberg_compact_peer --rounds 2\n" in report


def test_an_unknown_case_is_refused_before_spark_starts(capfd, tmp_path: Path):
    with pytest.raises(SystemExit):
        main(["hilbert", "--out", str(tmp_path / "report.md")])
    assert "no case hilbert: choose from copy, deletes, sort, zorder" in capfd.readouterr().err

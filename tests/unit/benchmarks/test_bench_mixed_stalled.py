"""Reads of a Mixed table without optimizing are measured beside equality deletes and Java."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.mixed_stalled import ask, format_report


def test_both_tables_have_equal_rows_after_each_quarter(tmp_path):
    answers = [*ask(tmp_path, commits=2, rows=40, rows_per_commit=5)]
    assert [each.commits for each in answers] == [0, 1, 2]
    report = format_report(answers, "python -m benchmarks.mixed_stalled 2")
    assert "| 2 |" in report
    assert "Java" not in report
    by_java = [replace(each, java=1.5) for each in answers]
    assert "| 1.500 |\n" in format_report(by_java, "python -m benchmarks.mixed_stalled 2 --java")

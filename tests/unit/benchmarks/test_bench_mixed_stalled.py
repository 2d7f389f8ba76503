"""Reads of Mixed tables without optimizing are measured beside equality deletes and Java."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import lakeformat as lake
from benchmarks.mixed_stalled import ask, ask_one_node, format_report
from benchmarks.stalled_tables import EqualityTable, peak_here, sums_of

SIZE = {"commits": 2, "rows": 40, "rows_per_commit": 2, "peak_of": lambda table: 3_000_000}


def test_both_tables_have_equal_rows_after_each_quarter(tmp_path):
    (tmp_path / "every").mkdir()
    (tmp_path / "one").mkdir()
    answers = [*ask(tmp_path / "every", **SIZE)]
    of_one_node = [*ask_one_node(tmp_path / "one", **SIZE)]
    assert [each.commits for each in answers] == [0, 1, 2]
    assert [each.commits for each in of_one_node] == [0, 1, 2]
    report = format_report(answers, of_one_node, "python -m benchmarks.mixed_stalled 2")
    assert report.count("\n| 2 | ") == 2
    assert report.count("| 3 |\n") == 6
    assert "Java" not in report
    by_java = [replace(each, java=1.5) for each in answers]
    command = "python -m benchmarks.mixed_stalled 2 --java"
    assert "| 1.500 | 3 | 3 |\n" in format_report(by_java, of_one_node, command)


def test_the_changes_of_one_node_leave_other_nodes_without_deletes(tmp_path):
    [*ask_one_node(tmp_path, **SIZE)]
    splits = lake.open_table(str(tmp_path / "bench/t")).scan().splits()
    assert [bool(each.deletes) for each in splits] == [True, *[False] * 7]


def test_the_peak_is_that_of_a_read_of_all_rows(tmp_path, monkeypatch):
    table = EqualityTable(tmp_path / "plain")
    peaks = iter([5, 12])
    monkeypatch.setattr("benchmarks.stalled_tables.peak_bytes", lambda: next(peaks))
    read = []
    monkeypatch.setattr(
        "benchmarks.stalled_tables.sums_of", lambda batches: read.append(sums_of(batches))
    )
    table.upsert(np.arange(4), np.arange(4))
    assert peak_here(table.published().location) == 7
    assert read == [(4, 6)]

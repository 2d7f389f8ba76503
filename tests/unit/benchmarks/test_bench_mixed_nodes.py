"""The benchmark of node numbers writes and reads equal tables, on a small scale."""

from __future__ import annotations

from benchmarks.mixed_nodes import ask, format_report


def test_every_table_is_measured_with_equal_rows(tmp_path):
    answers = [*ask(tmp_path, 200, [(2, 1), (2, 2)])]
    assert [(each.base_nodes, each.change_nodes) for each in answers] == [(2, 1), (2, 2)]
    assert answers[1].files > answers[0].files
    assert "| 2 | 1 |" in format_report(answers, 200)

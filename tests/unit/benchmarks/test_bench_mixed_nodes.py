"""The benchmark of node numbers writes and reads equal tables, on a small scale."""

from __future__ import annotations

from benchmarks.mixed_nodes import NODES, ask, format_report


def test_every_table_is_measured_with_equal_rows(tmp_path):
    answers = [*ask(tmp_path, 2000)]
    assert [(each.base_nodes, each.change_nodes) for each in answers] == [*NODES]
    assert answers[3].files > answers[2].files > answers[1].files
    assert "| 16 | 4 |" in format_report(answers, 2000)

"""Benchmark questions are asked of a hundredth of their rows: some in each run, all with --all."""

from __future__ import annotations

import pytest

from benchmarks.find import find_question, question_names
from benchmarks.harness import measure_times

SCALE = 0.01


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", question_names())
def test_all_candidates_of_a_question_give_the_same_answer(name, tmp_path):
    question = find_question(name)
    question.make_data(tmp_path, round(question.rows * SCALE))

    timings = measure_times(question, tmp_path, rounds=1, on_progress=lambda doing: None)

    assert timings.keys() == question.candidates.keys()

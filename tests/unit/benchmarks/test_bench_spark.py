"""The benchmark of Spark's paths counts all processes, and compares answers before times."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest

from benchmarks.answer import Answer
from benchmarks.harness import UnequalAnswersError
from benchmarks.spark_questions import Candidate, SparkQuestion
from benchmarks.spark_report import SparkRun, format_spark_report
from benchmarks.spark_speed import check_answers, main, measured
from benchmarks.timing import Timing
from benchmarks.tree_time import cpu_seconds_between, tree_ticks

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
BUSY_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\n"
WAITS = "print(flush=True)\ninput()\n"


def answering(name, answer, done=None):
    work = (lambda: done.append(name)) if done is not None else (lambda: None)
    return Candidate(name, work, None if answer is None else (lambda: answer))


def test_what_a_child_of_a_child_used_is_counted():
    before = tree_ticks()

    subprocess.run([sys.executable, "-c", BUSY_CHILD], check=True)

    assert cpu_seconds_between(before, tree_ticks()) >= 0.3


def test_what_a_child_that_still_runs_used_is_counted_from_the_first_look_on():
    with subprocess.Popen(
        [sys.executable, "-c", BUSY + WAITS + BUSY.replace("0.3", "0.6") + WAITS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        before = tree_ticks()
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        used = cpu_seconds_between(before, tree_ticks())
        child.stdin.write("\n")

    assert before[child.pid] >= 25
    assert 0.2 <= used < 0.6 + 0.3


def test_a_process_that_nobody_waited_for_gives_nobody_time_back():
    assert cpu_seconds_between({1: 100, 2: 500}, {1: 150}) == pytest.approx(0.5)


def test_a_candidate_with_another_answer_is_refused():
    with pytest.raises(UnequalAnswersError, match="'ours' does not give the answer of 'native'"):
        check_answers([answering("native", 5), answering("ours", 6)])


def test_a_floor_has_no_answer_and_the_others_are_compared_with_one_another():
    floor = answering("floor", None)

    check_answers([floor, answering("one", 5), answering("other", 5)])
    with pytest.raises(UnequalAnswersError, match="'other' does not give the answer of 'one'"):
        check_answers([floor, answering("one", 5), answering("other", 6)])


def test_candidates_take_turns_and_the_first_round_is_not_counted():
    done, settled, loads = [], [], []

    timings = measured(
        [answering("a", 1, done), answering("b", 1, done)], 2, lambda: settled.append(0), loads
    )

    assert done == ["a", "b", "b", "a", "a", "b"]
    assert {name: len(each) for name, each in timings.items()} == {"a": 2, "b": 2}
    assert len(settled) == len(loads) == 6


def test_a_report_says_scale_rounds_load_command_and_who_missed_a_target():
    ours = Candidate("ours", lambda: None, lambda: 1, target=0.95)
    candidates = [answering("floor", None), ours]
    timings = {"floor": [Timing(4.0, 2.0)] * 2, "ours": [Timing(2.0, 4.0)] * 2}
    answer = Answer(rows=1000, baseline="floor", timings=timings, peak_bytes={})
    run = SparkRun(name="merge", rows=1000, rounds=2, day=date(2026, 1, 31), loads=[1.0, 9.0, 3.0])

    page = format_spark_report(
        run, SparkQuestion("How fast?", lambda data: iter(())), candidates, answer
    )

    assert "1,000 rows, 2 rounds" in page
    assert "load was 3.0 (1.0–9.0)" in page
    assert "python -m benchmarks.spark_speed --rows 1000 --rounds 2 merge" in page
    assert "0.50 times the speed of *floor* by CPU time, and 2.00 times by wall time" in page
    assert "the target of 0.95 is **missed** by CPU" in page
    assert "all candidates except *floor* (only a part of the work) gave equal answers" in page


def test_an_unknown_question_is_refused_before_spark_starts(capfd):
    with pytest.raises(SystemExit):
        main(["nonsense"])

    assert "no question nonsense: choose from read, read_column" in capfd.readouterr().err

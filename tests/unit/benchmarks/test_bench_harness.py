from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.answer import Answer, cpu_seconds, wall_seconds
from benchmarks.asked_size import asked_size
from benchmarks.find import find_question, question_names
from benchmarks.harness import UnequalAnswersError, ask, measure_times
from benchmarks.question import Question
from benchmarks.report import Run, format_report
from benchmarks.timing import Timing

RUN = Run(name="sums", scale=0.5, rounds=3, day=date(2026, 1, 31))


def sums(**answers: int) -> Question[int, int]:
    """A question whose candidates return given answers, and first record that they ran."""
    return Question(
        sentence="How much does a sum cost?",
        rows=100,
        make_data=lambda folder, rows: None,
        open_data=lambda folder: 0,
        candidates={name: answering(answer) for name, answer in answers.items()},
        baseline="plain",
        answer=lambda result: result,
        targets={"ours": 0.9},
    )


def answering(answer: int) -> Callable[[int, Path], Callable[[], int]]:
    return lambda data, folder: lambda: answer


def measured() -> Answer:
    return Answer(
        rows=50,
        baseline="plain",
        timings={
            "plain": [Timing(4.0, 2.0), Timing(4.0, 2.0), Timing(4.0, 2.0)],
            "ours": [Timing(4.0, 1.0), Timing(8.0, 4.0), Timing(2.0, 2.5)],
        },
        peak_bytes={"plain": 1_000_000, "ours": 5_000_000},
    )


def test_a_candidate_with_another_answer_is_refused_before_any_time_counts():
    heard: list[str] = []

    with pytest.raises(UnequalAnswersError, match="'ours' does not give the answer of 'plain'"):
        ask("sums", sums(plain=5, ours=6), scale=1, rounds=3, on_progress=heard.append)

    assert [doing for doing in heard if "round" in doing] == []


def test_a_disagreement_ends_the_program_with_1_and_without_a_report(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("benchmarks.__main__.question_names", lambda: ["sums"])
    monkeypatch.setattr("benchmarks.__main__.find_question", lambda name: sums(plain=5, ours=6))

    code = main(["sums", "--out", str(tmp_path)])

    assert code == 1
    assert "does not give the answer" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_candidates_take_turns_and_each_is_first_in_some_round(tmp_path):
    heard: list[str] = []

    measure_times(sums(plain=5, ours=5), tmp_path, rounds=3, on_progress=heard.append)

    assert [doing for doing in heard if doing.startswith("round")] == [
        "round 1 of 3: plain",
        "round 1 of 3: ours",
        "round 2 of 3: ours",
        "round 2 of 3: plain",
        "round 3 of 3: plain",
        "round 3 of 3: ours",
    ]


def test_ratios_pair_a_candidate_with_the_baseline_of_the_same_round():
    assert measured().ratios("ours", cpu_seconds) == [2.0, 0.5, 0.8]
    assert measured().ratios("ours", wall_seconds) == [1.0, 0.5, 2.0]


def test_the_report_holds_the_ratios_the_verdict_and_the_command_that_makes_it_again():
    report = format_report(RUN, sums(plain=5, ours=5), measured())

    assert "| plain | 1 | 1 |" in report
    assert "| ours | 0.80 (0.50–2.00) | 1.00 (0.50–2.00) |" in report
    assert "the target of 0.90 is **missed**" in report
    assert "    bin/bench sums --scale 0.5 --rounds 3\n" in report
    assert "2026-01-31" in report


def test_a_question_cannot_set_a_target_for_a_candidate_it_does_not_have():
    with pytest.raises(ValueError, match="controls name unknown candidates: ours"):
        sums(plain=5)


def test_every_question_declares_itself():
    assert all(find_question(name).sentence.endswith("?") for name in question_names())


def test_an_unknown_question_is_refused_with_the_list_of_questions(capsys):
    with pytest.raises(SystemExit) as refused:
        main(["append_wirte"])

    assert refused.value.code == 2
    assert "no question append_wirte: choose from append_read" in capsys.readouterr().err


def test_a_question_asked_of_few_rows_leaves_a_report_and_a_plot(tmp_path):
    words = ["append_stream", "--scale", "0.0001", "--rounds", "2", "--out", str(tmp_path)]

    assert main(words) == 0

    assert "1,000 rows, 2 rounds" in (tmp_path / "append_stream.md").read_text(encoding="utf-8")
    assert (tmp_path / "append_stream.png").read_bytes().startswith(b"\x89PNG")


def test_a_size_is_the_only_argument_of_a_benchmark(capsys):
    assert asked_size("Counts rows.", "ROWS", 5, []) == 5
    assert asked_size("Counts rows.", "ROWS", 5, ["7"]) == 7
    with pytest.raises(SystemExit):
        asked_size("Counts rows.", "ROWS", 5, ["--help"])
    assert "Counts rows." in capsys.readouterr().out

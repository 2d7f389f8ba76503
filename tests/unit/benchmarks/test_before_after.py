"""Two checkouts of the repository answer the same questions in turns."""

from __future__ import annotations

from pathlib import Path

from benchmarks.before_after import main

PROJECT = Path(__file__).resolve().parents[3]


def test_a_line_for_each_candidate_has_the_times_of_both(capsys):
    request = [str(PROJECT), "manifest_encode", "--scale", "0.001", "--rounds", "2"]
    assert main(request) == 0
    header, _, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("| question | candidate | CPU s before | CPU s now |")
    assert [line.split(" | ")[:2] for line in lines] == [
        ["| manifest_encode", "columns"],
        ["| manifest_encode", "entries"],
    ]


def test_a_candidate_without_code_of_the_checkouts_is_marked(capsys):
    assert main([str(PROJECT), "append_stream", "--scale", "0.0001", "--rounds", "2"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[1] for line in lines] == [
        "iter_batches (control)",
        "scan().to_batches",
    ]


def test_a_checkout_that_cannot_answer_is_named(tmp_path, capsys):
    assert main([str(tmp_path), "row_hash", "--scale", "0.001", "--rounds", "2"]) == 1
    assert "row_hash: one of the two checkouts failed" in capsys.readouterr().err

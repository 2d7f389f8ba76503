"""A sample holds its ends and one of each kind, and a seed repeats it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakeformat.testing import CrashableStorage
from tests import sampling

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def sampled(monkeypatch):
    monkeypatch.setattr(sampling, "IS_WHOLE", False)
    monkeypatch.setattr(sampling, "SEED", 7)
    return monkeypatch


def test_a_sample_has_the_first_the_last_and_as_many_as_wanted_in_their_order():
    found = sampling.sample(range(100), 10)
    assert (found[0], found[-1], len(found)) == (0, 99, 10)
    assert found == sorted(set(found))


def test_a_sample_has_one_of_each_kind_even_if_that_makes_it_larger():
    found = sampling.sample(range(100), 3, kind=lambda number: number // 20)
    assert {number // 20 for number in found} == {0, 1, 2, 3, 4}
    assert len(found) == 5


def test_few_items_are_all_taken():
    assert sampling.sample("abc", 3) == ["a", "b", "c"]
    assert sampling.sample("", 3) == []


def test_a_seed_repeats_its_sample_and_seeds_reach_everything_in_time(sampled):
    assert sampling.sample(range(100), 10) == sampling.sample(range(100), 10)
    seen = set()
    for seed in range(100):
        sampled.setattr(sampling, "SEED", seed)
        seen.update(sampling.sample(range(100), 10))
    assert seen == set(range(100))


def test_each_test_has_its_own_sample(sampled):
    mine = sampling.sample(range(100), 10)
    sampled.setenv("PYTEST_CURRENT_TEST", "tests/a.py::test_other[x y] (call)")
    assert sampling.sample(range(100), 10) != mine


def test_a_whole_run_leaves_nothing_out(sampled):
    sampled.setattr(sampling, "IS_WHOLE", True)
    assert sampling.sample(range(100), 10) == list(range(100))
    assert sampling.count(3, whole=50) == 50


def test_the_environment_decides_a_count_first(sampled):
    assert sampling.count(3, 50, "EXAMPLES_OF_THIS_TEST") == 3
    sampled.setenv("EXAMPLES_OF_THIS_TEST", "8")
    assert sampling.count(3, 50, "EXAMPLES_OF_THIS_TEST") == 8


def write_files(storage, acknowledged=None) -> None:
    for number in range(40):
        storage.create(f"manifest/manifest-{number}", b"x")
    storage.create("snapshot/snapshot-1", b"x")
    for number in range(40):
        storage.exists(f"data-{number}")


def test_sampled_faults_meet_each_kind_of_storage_call():
    trials = sampling.sampled_faults(write_files)
    assert len(trials) == 8
    assert trials[0].call.number == 1
    assert trials[-1].call.number == 81
    assert "snapshot/snapshot-1" in {trial.call.path for trial in trials}


def read_files(storage, acknowledged=None) -> None:
    storage.create("snapshot/snapshot-1", b"x")
    for letter in "abcdefghijkl":
        storage.exists(f"{letter}-1")
    for letter in "abcdefghijkl":
        storage.create(f"{letter}-1", b"x")


def test_sampled_faults_meet_each_kind_of_change_and_each_way_to_read():
    trials = sampling.sampled_faults(read_files)
    made = {trial.call.path for trial in trials if trial.call.operation == "create"}
    assert made == {"snapshot/snapshot-1", *(f"{letter}-1" for letter in "abcdefghijkl")}
    assert sum(trial.call.operation == "exists" for trial in trials) == 1


def test_sampled_states_are_met_and_each_is_there_once():
    trials = list(sampling.sampled_states(write_files, start=CrashableStorage()))
    disks = [frozenset(trial.reopened().files()) for trial in trials]
    assert len(set(disks)) > 2
    # Reads change nothing: of the faults at them only the first is left.
    assert sum(trial.call.operation == "exists" for trial in trials) <= 1


def test_sampled_moments_are_numbers_from_one():
    calls = [("read", "snapshot/LATEST"), *[("list", "bucket-0")] * 98, ("create", "snapshot-2")]
    numbers = sampling.sampled_moments(calls)
    assert (numbers[0], numbers[-1], len(numbers)) == (1, 100, 8)


def test_a_run_draws_a_new_seed_and_repeats_a_given_one():
    def seed_of_a_run(**given: str) -> str:
        environment = {name: text for name, text in os.environ.items() if name != "SEED"}
        script = "from tests.sampling import SEED; import os; print(SEED, os.environ['SEED'])"
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment | given,
            capture_output=True,
            text=True,
            check=True,
        )
        here, of_children = done.stdout.split()
        assert here == of_children
        return here

    assert seed_of_a_run(SEED="5") == "5"
    assert seed_of_a_run() != seed_of_a_run(SEED="")


class Case:
    """A collected test of pytest, as far as a sample reads it."""

    def __init__(self, nodeid: str, most: int | None, **table: str) -> None:
        self.nodeid = nodeid
        self.mark = most and pytest.mark.sampled(most, **table).mark

    def get_closest_marker(self, name: str):
        return self.mark


def test_cases_of_a_marked_test_are_sampled_and_no_others(sampled):
    marked = [Case(f"tests/a.py::test_a[{number}]", 5) for number in range(50)]
    plain = [Case(f"tests/a.py::test_b[{number}]", None) for number in range(9)]
    kept = sampling.sampled_items([*marked, *plain])
    assert (len(set(kept) & set(marked)), kept[5:]) == (5, plain)
    assert sampling.sampled_items(marked[7:8]) == marked[7:8]
    sampled.setattr(sampling, "IS_WHOLE", True)
    assert sampling.sampled_items(marked) == marked


def test_tests_of_all_files_are_sampled_together_by_the_name_of_their_table(sampled):
    tests = [Case(f"tests/{file}.py::test_0", 2, among="streams") for file in "abcdefghi"]
    others = [Case("tests/a.py::test_0", 2, among="drivers")]
    kept = sampling.sampled_items([*tests, *others])
    assert len(set(kept) & set(tests)) == 2
    assert set(others) < set(kept)


def test_tests_of_one_story_are_all_there_or_none_of_them(sampled):
    story = [Case(f"tests/a.py::test_{part}", 1, among="drivers", story="a") for part in "abcd"]
    others = [Case(f"tests/b.py::test_{part}", 1, among="drivers") for part in "abc"]
    seen = []
    for seed in range(20):
        sampled.setattr(sampling, "SEED", seed)
        seen.append(sampling.sampled_items([*story, *others]))
    assert all(kept == story or (len(kept) == 1 and set(kept) < set(others)) for kept in seen)
    assert {*story, *others} == {case for kept in seen for case in kept}


def test_one_case_of_three_is_any_of_them(sampled):
    cases = [Case(f"tests/a.py::test_a[{number}]", 1) for number in range(3)]
    seen = []
    for seed in range(20):
        sampled.setattr(sampling, "SEED", seed)
        seen += sampling.sampled_items(cases)
    assert (len(seen), set(seen)) == (20, set(cases))

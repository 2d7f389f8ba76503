"""The groups and tests that bin/test runs."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import contextmanager
from itertools import islice

import pytest

from tests.unit.bootstrap.machine import ROOT

FOLDERS = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")}
OPT_IN = {"java", "readers", "stack"}


@pytest.fixture
def gate_of(bin_modules, monkeypatch):
    """Return the commands of the gate by name, without running them."""
    test, commands = bin_modules["test"], {}

    def record(name: str, command: list[str]) -> tuple[int, float]:
        commands[name] = command
        return 0, 0.0

    def gate(*words: str) -> dict[str, list[str]]:
        results = test.run_gate(bin_modules["groups"].parse_request(words or ["gate"]))
        assert [result.name for result in results] == [*commands]
        return commands

    monkeypatch.setattr(test, "stream", record)
    return gate


@pytest.mark.parametrize("writable", [True, False])
def test_no_tool_keeps_a_cache_in_a_folder_it_cannot_write(
    bin_modules, gate_of, monkeypatch, writable
):
    monkeypatch.setattr(bin_modules["test"].os, "access", lambda *_: writable)
    commands = gate_of()
    assert ("no:cacheprovider" in commands["structure"]) != writable
    assert ("--no-cache" in commands["lint"]) != writable
    assert (f"--cache-dir={os.devnull}" in bin_modules["test"].types()) != writable


def test_the_gate_holds_imports_names_and_generated_pages(bin_modules, gate_of):
    commands = gate_of()
    assert list(commands) == ["format", "lint", "structure", "collection"]
    for name in bin_modules["test"].STRUCTURE:
        assert str(ROOT / "tests" / "unit" / name) in commands["structure"]


def folders_of(commands):
    collection = commands["collection"]
    return {word.removeprefix("tests/") for word in collection if word.startswith("tests/")}


def test_the_gate_leaves_to_the_groups_what_they_do_after_it(gate_of):
    commands = gate_of("gate", "unit", "spark", "site")
    assert [*commands] == ["format", "lint", "collection"]
    assert folders_of(commands) == {"conformance", "crash", "interop", "airflow", *OPT_IN}


def test_the_gate_of_a_whole_run_collects_the_tests_that_only_a_named_group_runs(gate_of):
    assert folders_of(gate_of("--all")) == {*OPT_IN}


@pytest.mark.parametrize("words", [("gate",), ("--", "-x"), ("gate", "--", "tests/unit/test_a.py")])
def test_the_gate_collects_what_no_group_collects_as_a_whole(gate_of, words):
    assert folders_of(gate_of(*words)) == FOLDERS


@pytest.mark.parametrize(("words", "expected"), [(["gate", "unit"], True), (["unit"], False)])
def test_types_are_checked_beside_all_other_steps(bin_modules, monkeypatch, words, expected):
    test, order = bin_modules["test"], []

    @contextmanager
    def beside(steps, **_):
        [(name, _)] = steps
        order.append(f"start {name}")
        yield lambda: order.append(f"end {name}") or [(0, 0.0)]

    monkeypatch.setattr(test, "beside", beside)
    monkeypatch.setattr(test, "run_gate", lambda _: order.append("gate") or [])
    monkeypatch.setattr(test, "run_groups", lambda *_: order.append("tests"))
    test.run(bin_modules["groups"].parse_request(words), [])
    whole = ["start types", "gate", "tests", "end types"]
    assert order == (whole if expected else ["tests"])


@pytest.fixture
def run_groups(bin_modules, monkeypatch, tmp_path):
    """Return a function that runs groups with commands that only record their processes.

    Groups with Java or Airflow end before the remaining ones begin; ``more`` of these follow them.
    """
    test = bin_modules["test"]

    def run(*words, more=0):
        alone, aside = {}, {}
        request = bin_modules["groups"].parse_request(words)
        count = sum(group.is_aside for group in request.groups) + more

        def stream(name, command, environ=None):
            alone[name] = processes_of(command)
            return 0, 1.0

        @contextmanager
        def beside(steps, **_):
            aside.update({name: processes_of(command) for name, command in islice(steps, count)})
            yield lambda: [(3, 2.0) for _ in aside]

        monkeypatch.setattr(test, "stream", stream)
        monkeypatch.setattr(test, "beside", beside)
        monkeypatch.setattr(test.os, "cpu_count", lambda: 2)
        results = []
        test.run_groups(request, tmp_path, results)
        return alone, aside, results

    return run


def processes_of(command):
    return command[command.index("-n") + 1] if "-n" in command else "1"


def test_spark_and_airflow_are_tested_beside_the_other_groups(run_groups):
    alone, aside, results = run_groups()

    assert aside == {"spark": "2", "airflow": "2"}
    assert alone == {"unit": "3", "conformance": "3", "crash": "3", "interop": "2", "site": "1"}
    assert [result.name for result in results] == [*alone, *aside]
    assert [result.seconds for result in results] == [1.0] * 5 + [2.0] * 2
    assert [bool(result.failed) for result in results] == [False] * 5 + [True] * 2


def test_the_last_groups_follow_those_that_are_tested_beside_the_others(run_groups):
    alone, aside, results = run_groups(more=2)

    assert [*aside] == ["spark", "airflow", "site", "interop"]
    assert [*alone] == ["unit", "conformance", "crash"]
    assert [result.name for result in results] == [*alone, *aside]


def test_a_run_ends_though_all_groups_have_followed_those_beside_it(run_groups):
    alone, aside, _ = run_groups("unit", "spark", more=2)
    assert ([*alone], [*aside]) == ([], ["spark", "unit"])


def test_a_group_with_environments_of_its_own_follows_no_other(bin_modules):
    groups, test = bin_modules["groups"], bin_modules["test"]
    rest = deque([groups.UNIT, groups.COMPAT])
    assert [*test._taken_aside([groups.INTEROP], rest)] == [groups.INTEROP]
    assert [*rest] == [groups.UNIT, groups.COMPAT]


def test_a_group_that_runs_alone_has_the_processors_and_one_process_more(run_groups):
    assert run_groups("unit")[:2] == ({"unit": "3"}, {})
    assert run_groups("spark", "airflow")[:2] == ({"spark": "3", "airflow": "3"}, {})


def test_tests_that_must_run_in_one_process_run_one_group_at_a_time(run_groups):
    assert run_groups("unit", "spark", "--", "-s")[:2] == ({"unit": "1", "spark": "1"}, {})


def test_every_folder_of_tests_is_a_group_of_the_command(bin_modules):
    groups = bin_modules["groups"]
    assert {group.name for group in groups.GROUPS} >= FOLDERS


@pytest.fixture
def run_compat(bin_modules, monkeypatch, tmp_path):
    """Return a function that runs the group compat with commands that only record their Python."""
    command = bin_modules["test"]

    def prepare(environment, environ):
        if environment.name == ".venv-airflow-3.2":
            raise bin_modules["trouble"].SetupError("no network")

    monkeypatch.setattr(bin_modules["packages"], "prepare", prepare)

    def run(*arguments):
        ran, results = [], []

        def stream(name, words, environ=None):
            ran.append((name, words[0].removeprefix(f"{ROOT}/")))
            return 1, 0.0

        monkeypatch.setattr(command, "stream", stream)
        request = bin_modules["groups"].parse_request(["compat", *arguments])
        command.run_compat(request, tmp_path, results)
        return ran, results

    return run


def test_compat_runs_the_airflow_tests_with_each_version(run_compat):
    ran, results = run_compat()

    assert ran == [
        ("compat --airflow 3.3", sys.executable.removeprefix(f"{ROOT}/")),
        ("compat --airflow 3.1", ".venv-airflow-3.1/bin/python"),
        ("compat --airflow 3.4", ".venv-airflow-3.4/bin/python"),
    ]
    assert [result.name for result in results] == [
        "compat --airflow 3.3",
        "compat --airflow 3.1",
        "compat --airflow 3.2",
        "compat --airflow 3.4",
    ]
    assert results[1].rerun == "bin/test compat --airflow 3.1"


def test_compat_runs_tests_of_a_whole_airflow_only_if_they_are_named(bin_modules):
    groups = bin_modules["groups"]
    named = "tests/stack/test_templates.py"

    def tests_of(*arguments):
        request = groups.parse_request([*arguments])
        return {group.name: request.targets(group) for group in request.groups}

    assert tests_of("compat") == {"compat": ["tests/airflow"]}
    assert tests_of("compat", "--", named) == {"compat": [named]}
    assert tests_of("--", named) == {"stack": [named]}


def test_compat_says_why_a_version_was_skipped(run_compat):
    [skipped] = [result for result in run_compat()[1] if result.skip_reasons]

    assert skipped.skip_reasons == ("Airflow 3.2 is not installed: no network",)


def test_compat_runs_only_the_versions_that_are_named(run_compat):
    ran, results = run_compat("--airflow", "3.4", "--airflow", "3.3")

    assert [name for name, _ in ran] == ["compat --airflow 3.4", "compat --airflow 3.3"]
    assert len(results) == 2


def test_compat_lists_its_versions_if_it_does_not_know_one(bin_modules, run_compat):
    with pytest.raises(
        bin_modules["trouble"].SetupError, match=r"choose from 3\.1, 3\.2, 3\.3, 3\.4$"
    ):
        run_compat("--airflow", "2.10")


def test_a_version_of_airflow_needs_the_group_compat(bin_modules, capsys):
    with pytest.raises(SystemExit):
        bin_modules["groups"].parse_request(["airflow", "--airflow", "3.1"])

    assert (
        "--airflow chooses versions for the group compat: name that group, too"
        in capsys.readouterr().err
    )


def test_compat_runs_only_when_it_is_named(bin_modules):
    groups = bin_modules["groups"]

    assert groups.COMPAT not in groups.parse_request([]).groups
    assert groups.COMPAT not in groups.parse_request(["--", "tests/airflow/test_x.py"]).groups
    [named] = groups.parse_request(["compat", "--", "tests/airflow/test_x.py"]).groups
    assert named is groups.COMPAT

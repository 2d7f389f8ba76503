"""bin/test ends with one summary: verdicts, skips by reason, and totals that are true."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest

def test_passes(): pass

def test_fails(): assert False

class TestBook:
    @pytest.mark.parametrize("page", ["a b"])
    def test_fails_too(self, page): assert False

@pytest.fixture
def broken(): raise RuntimeError

def test_cannot_start(broken): pass

@pytest.mark.skip(reason="needs a Java")
def test_skipped(): pass

@pytest.mark.skip(reason="needs a Java")
def test_skipped_again(): pass

@pytest.mark.xfail(reason="not yet")
def test_gap(): assert False
"""


@pytest.fixture
def bin_module(monkeypatch):
    """Import a module of bin/, which is not on the path of the tests."""
    monkeypatch.syspath_prepend(ROOT / "bin")
    before = set(sys.modules)
    yield importlib.import_module
    for name in {"groups", "summary"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def summary(bin_module):
    return bin_module("summary")


@pytest.fixture
def report(tmp_path):
    """Run pytest on a small suite; returns the report as bin/test asks for it."""

    def run(source, *, expect):
        folder = tmp_path / "tests" / "unit"
        folder.mkdir(parents=True)
        (folder / "test_it.py").write_text(source)
        (tmp_path / "pytest.ini").write_text("[pytest]\njunit_family = xunit1\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "--junitxml=report.xml", "tests/unit"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == expect
        return tmp_path / "report.xml"

    return run


def test_a_run_is_counted_by_outcome_and_skips_by_reason(summary, report):
    result = summary.read_junit(report(SUITE, expect=1), name="unit", seconds=1.5, exit_code=1)
    assert (result.passed, result.failed) == (1, 3)
    assert result.rerun == "bin/test unit -- tests/unit/test_it.py::test_fails"
    text = summary.format_summary([result])
    assert "FAILED  unit" in text
    assert "     2  needs a Java\n     1  known gap: not yet" in text
    assert text.splitlines()[-1] == "1 passed, 3 failed, 3 skipped"


def test_a_test_in_a_class_with_a_parameter_can_be_run_again(summary, report):
    only = SUITE.replace("def test_fails(): assert False", "")
    result = summary.read_junit(report(only, expect=1), name="unit", seconds=1, exit_code=1)
    assert result.rerun.endswith("-- 'tests/unit/test_it.py::TestBook::test_fails_too[a b]'")


def test_a_file_that_does_not_load_is_a_failure(summary, report):
    result = summary.read_junit(
        report("import nothing", expect=2), name="unit", seconds=1, exit_code=2
    )
    assert (result.passed, result.failed) == (0, 1)
    assert result.rerun == "bin/test unit -- tests/unit/test_it.py"


@pytest.mark.parametrize("content", [None, "", "<testsuites><testsuite>"])
def test_a_run_that_died_without_a_whole_report_is_a_failure(summary, tmp_path, content):
    if content is not None:
        (tmp_path / "report.xml").write_text(content)
    result = summary.read_junit(tmp_path / "report.xml", name="unit", seconds=1, exit_code=-9)
    assert (result.failed, result.rerun) == (1, "bin/test unit")


def test_a_failed_check_counts_as_one_failure_and_says_how_to_mend_it(summary):
    lint = summary.StepResult(
        "lint", 0.1, passed=0, failed=1, rerun="bin/test gate", mend="ruff --fix", is_test=False
    )
    types = summary.StepResult("types", 0.1, passed=1, failed=0, is_test=False)
    unit = summary.StepResult("unit", 2.0, passed=7, failed=0)
    lines = summary.format_summary([lint, types, unit]).splitlines()
    assert "repair automatically:  ruff --fix" in lines
    assert "run the first failure again:  bin/test gate" in lines
    assert lines[-1] == "7 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            [],
            ["gate", "unit", "conformance", "crash", "interop", "spark", "airflow", "site"],
        ),
        (["crash", "unit"], ["unit", "crash"]),
        (["--", "tests/unit/test_a.py::test_b", "-x"], ["unit"]),
        (["java", "unit"], ["unit", "java"]),
        (["--", "tests/java/test_a.py"], ["java"]),
    ],
)
def test_groups_run_in_one_order_and_a_named_test_needs_no_group(bin_module, words, expected):
    request = bin_module("groups").parse_request(words)
    assert [group.name for group in request.groups] == expected


def test_a_named_test_is_run_instead_of_its_group(bin_module):
    groups = bin_module("groups")
    request = groups.parse_request(["unit", "crash", "--", "-x", "tests/crash/test_a.py"])
    assert request.options == ("-x",)
    assert [request.targets(group) for group in request.groups] == [["tests/crash/test_a.py"]]


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ([], ["readers", "compat", "stack", "java"]),
        (["unit"], []),
        (["java"], []),
        (["--", "tests/unit/test_a.py"], []),
    ],
)
def test_only_a_run_of_everything_says_which_groups_it_left_out(bin_module, words, left_out):
    request = bin_module("groups").parse_request(words)
    assert [group.name for group in request.left_out] == left_out


def test_the_summary_says_of_a_group_left_out_what_it_needs_and_how_to_run_it(summary):
    unit = summary.StepResult("unit", 2.0, passed=7, failed=0)
    notes = ["java (needs a JDK 17 to 21 and Maven): bin/test java"]
    lines = summary.format_summary([unit], left_out=notes).splitlines()
    assert "not run:  java (needs a JDK 17 to 21 and Maven): bin/test java" in lines
    assert lines[-1] == "7 passed, 0 failed, 0 skipped"


def test_the_summary_lists_the_twenty_slowest_tests_of_all_groups(summary):
    unit = summary.StepResult("unit", 9.0, 7, 0, slowest=((3.0, "a"), (1.0, "c")))
    crash = summary.StepResult(
        "crash", 99.0, 7, 0, slowest=((2.0, "b"), *[(0.5, f"t{n:02}") for n in range(20)])
    )
    lines = summary.format_summary([unit, crash]).splitlines()
    listed = lines[lines.index("slowest 20 tests:") + 1 :][:21]
    assert listed[:4] == ["     3.0 s  a", "     2.0 s  b", "     1.0 s  c", "     0.5 s  t19"]
    assert listed[20] == ""


def test_seconds_of_tests_are_read_from_the_report(summary, report):
    slow = "import time\ndef test_slow(): time.sleep(0.2)\ndef test_quick(): pass\n"
    result = summary.read_junit(report(slow, expect=0), name="unit", seconds=1, exit_code=0)
    assert [name for _, name in result.slowest] == [
        "tests/unit/test_it.py::test_slow",
        "tests/unit/test_it.py::test_quick",
    ]
    assert result.slowest[0][0] >= 0.2


@pytest.mark.parametrize(
    ("is_whole", "command"), [(False, "SEED=7 bin/test"), (True, "SEED=7 bin/test --all")]
)
def test_the_summary_says_how_to_repeat_the_sample_and_a_failure_in_it(summary, is_whole, command):
    crash = summary.StepResult("crash", 2.0, passed=7, failed=1, rerun="bin/test crash -- tests/a")
    sample = summary.Sample("7", is_whole=is_whole)
    text = summary.format_summary([crash], sample=sample)
    assert f"run these tests again:  {command} with the same groups and options (" in text
    assert f"run the first failure again:  {command} crash -- tests/a\n" in text


@pytest.mark.parametrize("words", [["--all"], ["crash", "--all"], ["--all", "unit"]])
def test_all_is_an_option_of_any_group(bin_module, words):
    groups = bin_module("groups")
    assert groups.parse_request(words).is_whole
    assert not groups.parse_request([word for word in words if word != "--all"]).is_whole

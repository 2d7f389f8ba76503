"""bin/demo, bin/test and bin/bench set themselves up, or print one line with the reason."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
from typing import Any

import pytest

from tests.unit.bootstrap.machine import (
    OTHER_PYTHON,
    ROOT,
    SYSTEM_PYTHON,
    Machine,
    lake_lines,
    wait_for,
)


def test_the_first_run_sets_up_and_passes_the_words_on(machine: Machine):
    code, stdout, _ = machine.run("demo", "--folder", "a b")
    assert (code, stdout.splitlines()[0]) == (0, "worked --folder a b")
    kinds = [call.split()[0] for call in machine.uv_calls]
    assert kinds == ["venv", "pip", "pip"]
    assert all("--compile-bytecode" in call for call in machine.uv_calls[1:])
    assert ["--require-hashes" in call for call in machine.uv_calls] == [False, True, False]


def test_the_variables_of_documented_commands_reach_the_tests(bin_modules):
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
    named = set()
    for path in [*pages, *ROOT.glob("tests/**/*.py")]:
        text = path.read_text()
        named.update(re.findall(r"\b([A-Z][A-Z_]+)=\S+\s+bin/test\b", text))
        named.update(re.findall(r"\bcount\([^()]*\"([A-Z][A-Z_]+)\"\)", text))
    assert named >= {"CHART_SCHEMA", "COMMITS", "EXAMPLES", "KILL_SECONDS", "SEED"}
    environment, packages = bin_modules["environment"], bin_modules["packages"]
    ours = packages.Environment(ROOT, ".venv", "requirements/tested.txt", True, gigabytes=3)
    given = dict.fromkeys(named, "7")
    kept = environment.work_environ(ours, given, "/java")
    assert {name: kept.get(name) for name in named} == given


def test_the_second_run_installs_nothing_and_asks_no_java(machine: Machine):
    machine.run("demo")
    calls = machine.uv_calls
    machine.add_program("java", "#!/bin/sh\nexit 1\n", folder=machine.home / "java-17" / "bin")
    code, stdout, stderr = machine.run("demo")
    assert (code, stderr) == (0, "")
    assert f"JAVA_HOME={machine.home}/java-17" in stdout
    assert machine.uv_calls == calls


def test_new_metadata_reinstalls_only_the_project(machine: Machine):
    machine.run("demo")
    calls = len(machine.uv_calls)
    with (machine.project / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    machine.run("demo")
    (call,) = machine.uv_calls[calls:]
    assert "--no-deps --no-build-isolation --editable" in call


def test_new_pins_build_the_environment_again(machine: Machine):
    machine.run("demo")
    calls = len(machine.uv_calls)
    (machine.venv / "left-over").touch()
    with (machine.project / "requirements" / "tested.txt").open("a") as file:
        file.write("another==1.0\n")
    assert machine.run("demo")[0] == 0
    assert [call.split()[0] for call in machine.uv_calls[calls:]] == ["venv", "pip", "pip"]
    assert not (machine.venv / "left-over").exists()


def test_another_python_that_asks_keeps_the_environment(machine: Machine):
    machine.run("demo")
    calls = machine.uv_calls
    other = machine.add_program("python-of-another-path", OTHER_PYTHON)
    assert machine.run("demo", PYTHON=str(other))[0] == 0
    assert machine.uv_calls == calls


@pytest.mark.parametrize("said", ["exit 1", "echo 3.10"])
def test_an_environment_whose_own_python_is_gone_is_built_again(machine: Machine, said: str):
    machine.run("demo")
    calls = len(machine.uv_calls)
    machine.add_program("python", f"#!/bin/sh\n{said}\n", folder=machine.venv / "bin")
    code, stdout, _ = machine.run("demo")
    assert (code, stdout.splitlines()[0]) == (0, "worked")
    assert machine.uv_calls[calls].startswith("venv")


def test_the_commands_work_through_a_symbolic_link(machine: Machine):
    link = machine.home / "lake-demo"
    link.symlink_to(machine.project / "bin" / "demo")
    shown = subprocess.run([link], env=machine.environ(), capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "worked")


def test_an_environment_in_use_is_not_built_again_under_its_user(machine: Machine):
    machine.run("demo")
    (machine.project / "requirements" / "tested.txt").write_text("another==1.0\n")
    with (machine.venv / "pyvenv.cfg").open() as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        code, _, stderr = machine.run("demo")
    assert code == 2
    assert "another run is using it" in lake_lines(stderr)[-1]
    assert machine.venv.exists()


def test_two_first_runs_at_once_set_up_once(machine: Machine):
    runs = [machine.start("demo", UV_SLEEPS="0.2") for _ in range(2)]
    outputs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert all(stdout.startswith("worked") for stdout, _ in outputs)
    assert sum(call.startswith("venv") for call in machine.uv_calls) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_python_too_old_is_one_line_and_exit_2(machine: Machine, named: bool):
    machine.programs.joinpath("python3").unlink()
    old = machine.add_program("python3", "#!/bin/sh\nexit 1\n")
    code, stdout, stderr = machine.run("demo", **({"PYTHON": str(old)} if named else {}))
    assert (code, stdout) == (2, "")
    (line,) = stderr.splitlines()
    assert "Python 3.11 or newer" in line


def test_a_newer_python_behind_an_older_one_is_found(machine: Machine):
    machine.programs.joinpath("python3").unlink()
    machine.add_program("python3", "#!/bin/sh\nexit 1\n")
    machine.programs.joinpath("python3.12").symlink_to(SYSTEM_PYTHON)
    assert machine.run("demo")[0] == 0


def test_a_failed_installation_is_one_line_and_repaired_by_the_next_run(machine: Machine):
    code, stdout, stderr = machine.run("demo", UV_FAILS="error: Request failed: dns error")
    assert (code, stdout) == (2, "")
    assert "connect to the network" in lake_lines(stderr)[-1]
    assert not machine.venv.exists()
    assert machine.run("demo")[0] == 0


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("error: Request failed after 3 retries: dns error", "connect to the network"),
        ("NewConnectionError: [Errno 101] Network is unreachable", "connect to the network"),
        ("cause: invalid peer certificate: UnknownIssuer", "set SSL_CERT_FILE"),
        ("OSError: [Errno 28] No space left on device", "free about 3 GB"),
        ("error: cannot make x: Read-only file system (os error 30)", "folder you own"),
        ("The virtual environment was not created: ensurepip is not available", "python3-venv"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. Otherwise\n"
            "    six==1.17.0 from https://index/six.whl (from -r lock.txt (line 1)):",
            "six==1.17.0 has another hash than in the lock file",
        ),
        (
            "error: Failed to download `six==1.17.0`\n  cause: Hash mismatch for `six==1.17.0`",
            "six==1.17.0 has another hash than in the lock file",
        ),
        (
            "ERROR: Hashes are required in --require-hashes mode, but they are missing",
            "run bin/lock",
        ),
        (
            "error: In `--require-hashes` mode, all requirements must have a hash, but none were",
            "run bin/lock",
        ),
        (
            "noise\nerror: something new\nmore noise",
            "error: something new (the whole output is in log)",
        ),
        ("  OSError: no README.md\nerror: failed\nsee above", "OSError: no README.md"),
        ("", "the installer printed nothing"),
    ],
)
def test_what_an_installer_says_becomes_one_line_of_advice(bin_modules, said, advice):
    line = str(bin_modules["trouble"].explain_output("installing", said, "log"))
    assert line.startswith("installing failed: ")
    assert advice in line
    assert "\n" not in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_set_up_leaves_nothing_and_is_repaired(machine: Machine, number):
    run = machine.start("demo", UV_SLEEPS="30")
    wait_for(lambda: any(call.startswith("pip") for call in machine.uv_calls))
    run.send_signal(number)
    _, stderr = run.communicate(timeout=10)
    assert run.returncode == 128 + number
    assert "Traceback" not in stderr
    assert not machine.venv.exists()
    assert machine.run("demo")[0] == 0


def test_a_killed_set_up_is_not_trusted(machine: Machine):
    run = machine.start("demo", UV_SLEEPS="4")
    wait_for(lambda: any(call.startswith("pip") for call in machine.uv_calls))
    run.kill()
    run.communicate(timeout=10)
    (machine.venv / "half-installed").touch()
    code, _, stderr = machine.run("demo")
    assert code == 0
    # The installer outlives its parent and holds the lock: two must never write at once.
    assert "waiting for another run" in stderr
    assert not (machine.venv / "half-installed").exists()


def test_an_occupied_place_is_left_alone(machine: Machine):
    machine.venv.write_text("mine")
    code, _, stderr = machine.run("demo")
    assert code == 2
    assert "move it away" in lake_lines(stderr)[-1]
    assert machine.venv.read_text() == "mine"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_refuses_is_one_line_and_exit_2(bin_modules, monkeypatch, capsys, number):
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number), str(ROOT / ".venv.lock"))

    monkeypatch.setattr(bin_modules["environment"], "set_up", refuse)
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = bin_modules["environment"].main(["demo"])
    finally:
        signal.signal(signal.SIGTERM, before)
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert str(ROOT) in line
    assert "folder you own" in line or "free about 3 GB" in line


def test_too_little_space_is_refused_before_the_first_byte(bin_modules, tmp_path):
    packages = bin_modules["packages"]
    (tmp_path / "lock.txt").touch()
    wanted = packages.Environment(tmp_path, ".venv", "lock.txt", False, gigabytes=10**9)
    with pytest.raises(bin_modules["trouble"].SetupError, match=r"GB left and \.venv needs"):
        packages.prepare(wanted, {})
    assert not wanted.folder.exists()


@pytest.mark.parametrize(("command", "told"), [("test", "conformance"), ("demo", "--keep")])
def test_help_needs_no_set_up(machine: Machine, command: str, told: str):
    for program in ("uv", "java"):
        machine.programs.joinpath(program).unlink()
    code, stdout, stderr = machine.run(command, "--help")
    assert (code, stderr) == (0, "")
    assert told in stdout
    assert not machine.venv.exists()


def test_an_unknown_group_is_refused_before_the_set_up(machine: Machine):
    code, _, stderr = machine.run("test", "units")
    assert code == 2
    assert "'units' is not a group: choose from gate, unit" in stderr
    assert not machine.venv.exists()


def test_the_callers_spark_and_airflow_stay_outside(machine: Machine):
    leaking = {
        "SPARK_HOME": "/opt/spark",
        "AIRFLOW__CORE__DAGS_FOLDER": "/dags",
        "AIRFLOW_CONN_LAKE": "lake://elsewhere",
        "LAKE_WAREHOUSE": "/elsewhere",
        "PYTHONPATH": "/elsewhere",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    _, stdout, _ = machine.run("demo", **leaking)
    seen = dict(line.split("=", 1) for line in stdout.splitlines()[1:])
    assert not leaking.keys() & seen.keys()
    assert seen["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert seen["AIRFLOW_HOME"].startswith(str(machine.venv))
    assert seen["PATH"].startswith(str(machine.venv / "bin"))


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["test"], [".venv-pypaimon", ".venv-site"]),
        (["test", "interop"], [".venv-pypaimon"]),
        (["test", "readers"], [".venv-readers"]),
        (["test", "site"], [".venv-site"]),
        (["test", "unit"], []),
    ],
)
def test_packages_of_a_group_alone_are_installed_only_for_it(machine, words, made):
    add_groups(machine)
    machine.run(*words)
    assert sorted(path.name for path in machine.project.glob(".venv-*/")) == made
    assert machine.run(*words)[:2] == (0, "")


def test_packages_of_a_group_that_cannot_be_installed_end_the_set_up(machine: Machine):
    add_groups(machine)
    fails = {"UV_FAILS": "error: dns error", "UV_FAILS_FOR": "pypaimon.txt"}
    code, stdout, _ = machine.run("test", "interop", **fails)
    assert code == 2
    assert "connect to the network" in stdout.splitlines()[-1]
    assert [path.name for path in machine.project.glob(".venv-*/")] == []
    assert machine.run("test", "interop")[0] == 0


def add_groups(machine: Machine) -> None:
    """Give the project tests of some groups, and a bin/test that runs none."""
    for group in ("unit", "interop", "readers", "site"):
        folder = machine.project / "tests" / group
        folder.mkdir(parents=True)
        folder.joinpath("test_nothing.py").touch()
    machine.project.joinpath("bin", "test.py").write_text("")


def test_a_lock_takes_the_place_of_packages_of_another_one(bin_modules, tmp_path):
    (tmp_path / "tested.txt").write_text("a==1 \\\n    --hash=x\nb==1 \\\n    --hash=y\n")
    (tmp_path / "other.txt").write_text("b==2 \\\n    --hash=z\nc==1 \\\n    --hash=w\n")
    made = bin_modules["packages"].Environment(
        tmp_path, ".venv-other", "tested.txt", False, gigabytes=0, instead="other.txt"
    )

    assert made.pins == "a==1 \\\n    --hash=x\nb==2 \\\n    --hash=z\nc==1 \\\n    --hash=w\n"

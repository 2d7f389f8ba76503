"""The released Java implementation is made where a machine can make it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.bootstrap.machine import ROOT, Machine

# Leaves a jar where Maven would copy it; MAVEN_FAILS is what it says before it gives up.
FAKE_MAVEN = """\
#!/bin/sh
echo fetch >> "$PEER_CALLS"
for word in "$@"; do case "$word" in -DoutputDirectory=*) mkdir -p "${word#*=}";; esac; done
[ -z "${MAVEN_FAILS:-}" ] || { echo "[ERROR] $MAVEN_FAILS"; exit 1; }
"""


def jdk_and_maven(machine: Machine) -> dict[str, str]:
    """A JDK and a Maven on the machine, with their version output."""
    home = machine.add_java("17", folder=machine.home / "jdk").parent.parent
    machine.add_program("javac", '#!/bin/sh\necho compile >> "$PEER_CALLS"\n', folder=home / "bin")
    machine.add_program("mvn", FAKE_MAVEN)
    return {**machine.environ(), "PEER_CALLS": str(machine.home / "calls"), "JAVA_HOME": str(home)}


@pytest.fixture
def java_project(machine: Machine) -> Path:
    """The project with the sources of the Java peer."""
    sources = machine.project / "tests" / "java" / "peer"
    shutil.copytree(ROOT / "tests" / "java" / "peer", sources)
    return machine.project


def test_the_java_peer_is_made_once_and_again_when_its_sources_change(
    machine: Machine, java_project: Path, bin_modules
):
    environ, prepare = jdk_and_maven(machine), bin_modules["javapeer"].prepare
    first = prepare(java_project, environ)
    assert first["java"] == f"{environ['JAVA_HOME']}/bin/java"
    assert prepare(java_project, environ) == first
    calls = machine.home / "calls"
    assert calls.read_text().split() == ["fetch", "compile"]
    with (java_project / "tests/java/peer/Peer.java").open("a") as source:
        source.write("// changed\n")
    prepare(java_project, environ)
    assert calls.read_text().split() == ["fetch", "compile"] * 2


@pytest.mark.parametrize(
    ("missing", "said"),
    [("bin/javac", "needs a JDK 17 to 21 with javac"), ("mvn", "needs Maven")],
)
def test_a_machine_that_cannot_make_the_java_peer_says_what_is_missing(
    machine: Machine, java_project: Path, bin_modules, missing, said
):
    environ = jdk_and_maven(machine)
    for folder in (machine.home / "jdk", machine.programs):
        (folder / missing).unlink(missing_ok=True)
    with pytest.raises(bin_modules["trouble"].SetupError, match=said) as raised:
        bin_modules["javapeer"].prepare(java_project, environ)
    assert "\n" not in str(raised.value)


def test_a_failed_fetch_of_the_java_peer_is_one_line_and_repaired_by_the_next_run(
    machine: Machine, java_project: Path, bin_modules
):
    environ, prepare = jdk_and_maven(machine), bin_modules["javapeer"].prepare
    with pytest.raises(bin_modules["trouble"].SetupError, match="connect to the network"):
        prepare(java_project, environ | {"MAVEN_FAILS": "somewhere: Name or service not known"})
    prepare(java_project, environ)
    calls = (machine.home / "calls").read_text().split()
    assert calls == ["fetch", "fetch", "compile"]


def test_the_java_group_ends_with_exit_2_where_it_cannot_run(bin_modules, monkeypatch, capsys):
    test, trouble = bin_modules["test"], bin_modules["trouble"]

    def refuse(*_: Any) -> None:
        raise trouble.SetupError("bin/test java needs Maven")

    monkeypatch.setattr(test.javapeer, "prepare", refuse)
    assert test.main(["java"]) == 2
    assert capsys.readouterr().err == "lake: bin/test java needs Maven\n"

"""The groups and tests that bin/test runs."""

from __future__ import annotations

import os

import pytest

from tests.unit.bootstrap.machine import ROOT


@pytest.mark.parametrize("writable", [True, False])
def test_no_tool_keeps_a_cache_in_a_folder_it_cannot_write(bin_modules, monkeypatch, writable):
    commands: dict[str, list[str]] = {}

    def record(name: str, command: list[str]) -> tuple[int, float]:
        commands[name] = command
        return 0, 0.0

    test = bin_modules["test"]
    monkeypatch.setattr(test, "stream", record)
    monkeypatch.setattr(test.os, "access", lambda *_: writable)
    test.run_gate()
    assert ("no:cacheprovider" in commands["structure"]) != writable
    assert ("--no-cache" in commands["lint"]) != writable
    assert (f"--cache-dir={os.devnull}" in commands["types"]) != writable


def test_the_gate_holds_imports_names_and_generated_pages(bin_modules, monkeypatch):
    commands: dict[str, list[str]] = {}
    test = bin_modules["test"]
    monkeypatch.setattr(
        test, "stream", lambda name, command: (commands.setdefault(name, command) and 0, 0.0)
    )
    test.run_gate()
    assert list(commands) == ["format", "lint", "types", "structure"]
    for name in test.STRUCTURE:
        assert str(ROOT / "tests" / "unit" / name) in commands["structure"]


def test_every_folder_of_tests_is_a_group_of_the_command(bin_modules):
    groups = bin_modules["groups"]
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert folders <= {group.name for group in groups.GROUPS}

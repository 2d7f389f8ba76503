"""bin/demo names the reason in one line if it stops."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.bootstrap.machine import ROOT


def run_demo(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The real demo, in this environment."""
    command = [sys.executable, str(ROOT / "bin" / "demo.py"), *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **settings)


@pytest.mark.parametrize("name", ["file", "file/below", "full"])
def test_a_demo_that_cannot_write_says_so_in_one_line(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    shown = run_demo("--warehouse", str(tmp_path / name), stdout=subprocess.DEVNULL)
    (line,) = shown.stderr.splitlines()
    assert shown.returncode == 2
    assert line.startswith("bin/demo: ")
    assert "--warehouse" in line


def test_a_command_that_the_demo_prints_can_be_typed(tmp_path):
    shown = run_demo("--warehouse", str(tmp_path / "new"), stdout=subprocess.PIPE, cwd=ROOT)
    _, _, after = shown.stdout.partition("   $ ")
    command, *table = after.partition("\n\n")[0].splitlines()
    typed = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert typed.stdout.splitlines() == table


def test_a_demo_that_nobody_reads_ends_with_one_line(tmp_path):
    read, write = os.pipe()
    os.close(read)
    shown = run_demo("--warehouse", str(tmp_path), stdout=write)
    os.close(write)
    assert shown.returncode == 2
    assert shown.stderr.splitlines()[-1].startswith("bin/demo: the program that read the output")
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("trouble", "code"),
    [(OSError(errno.EROFS, "Read-only file system", "/x"), 2), (KeyboardInterrupt(), 130)],
)
def test_what_stops_a_demo_is_one_line(bin_modules, monkeypatch, capsys, tmp_path, trouble, code):
    def stop(_: Path) -> None:
        raise trouble

    demo = bin_modules["demo"]
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    monkeypatch.setattr(demo, "DEFAULT_WAREHOUSE", tmp_path)
    monkeypatch.setattr(demo.shutil, "rmtree", stop)
    assert demo.main() == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bin/demo: ")


def test_a_demo_leaves_one_that_is_open_alone(bin_modules, monkeypatch, capsys, tmp_path):
    demo = bin_modules["demo"]
    mine = tmp_path / "warehouse" / "rows"
    mine.parent.mkdir()
    mine.touch()
    monkeypatch.setattr(sys, "argv", ["demo.py", "--quick"])
    monkeypatch.setattr(demo, "DEFAULT_WAREHOUSE", mine.parent)
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert demo.main() == 2
    assert mine.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert "another demo runs" in line
    assert "--folder" in line

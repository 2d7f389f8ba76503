"""Machines to set the project up on, and the modules of bin/."""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.bootstrap.machine import FAKE_DEMO, FAKE_UV, ROOT, SYSTEM_PYTHON, Machine

BIN_MODULES = (
    "beside",
    "compat",
    "demo",
    "demo_arguments",
    "environment",
    "groups",
    "java",
    "javapeer",
    "packages",
    "pip_install",
    "step",
    "summary",
    "test",
    "trouble",
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with Python, uv and a Java 17."""
    made = Machine(tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("bin", "requirements"):
        shutil.copytree(ROOT / folder, made.project / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", made.project)
    (made.project / "bin" / "demo.py").write_text(FAKE_DEMO)
    made.programs.mkdir()
    for name in ("chmod", "cp", "dirname", "mkdir", "readlink", "sleep"):
        made.programs.joinpath(name).symlink_to(shutil.which(name) or pytest.fail(name))
    made.programs.joinpath("python3").symlink_to(SYSTEM_PYTHON)
    made.add_program("uv", FAKE_UV)
    made.programs.joinpath("java").symlink_to(made.add_java("17"))
    return made


@pytest.fixture
def bin_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of bin/, which are not on the path of the tests."""
    monkeypatch.syspath_prepend(ROOT / "bin")
    yield {name: importlib.import_module(name) for name in BIN_MODULES}
    for name in BIN_MODULES:
        del sys.modules[name]

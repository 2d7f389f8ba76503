"""The environment of a group that needs packages in other versions than the project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["own_python"]

_ROOT = Path(__file__).resolve().parents[1]

# What bin/test does before such a group: makes the environment, or returns at once if it exists.
# A process of its own, because the scripts in bin/ import one another by bare names.
_PREPARE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import environment, packages
[group] = [group for group in environment.SEPARATE if group.name == sys.argv[2]]
place = environment.separate(environment.ROOT, group)
try:
    packages.prepare(place, os.environ)
except environment.SetupError as error:
    print(error)
    sys.exit(2)
print(place.python)
"""
_UNFIT_MACHINE = 2


def own_python(group: str) -> Path:
    """Return the interpreter of a group's environment; skip the test if it cannot be made."""
    command = [sys.executable, "-B", "-c", _PREPARE, str(_ROOT / "bin"), group]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == _UNFIT_MACHINE:
        pytest.skip(f"bin/test {group} cannot make its environment: {done.stdout.strip()}")
    done.check_returncode()
    return Path(done.stdout.strip())

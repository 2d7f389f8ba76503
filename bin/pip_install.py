"""Installs a lock file with several pips at once, into the environment whose Python runs this.

One pip uses one processor. A lock file lists all packages, so several pips can share it.
"""

from __future__ import annotations

import compileall
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

MOST_PIPS = 4

# Almost half of all source text: tests, and packages of which a run imports few modules or, with
# mypy, only what is compiled to machine code. Python compiles the few at their first import.
SELDOM_IMPORTED = re.compile(
    "/(tests|distlib|dns|fontTools|identify|libcst|moto|mypyc?|numpy/f2py|pip|pkg_resources|pygments"
    "|pyspark/(ml|mllib|pandas)|setuptools|sqlalchemy/testing|sqlglot|virtualenv)/"
)
PIP = (
    *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"),
    *("--require-hashes", "--no-deps", "--no-compile"),
)


def main(lock: str, *options: str) -> int:
    """Install the lock file with pip's ``options``; return the highest exit code of all pips.

    The output of pip has the reason of a failure.
    """
    pips = min(os.cpu_count() or 1, MOST_PIPS)
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, part in enumerate(split(Path(lock).read_text(encoding="utf-8"), pips)):
            file = Path(folder, f"{number}.txt")
            file.write_text(part, encoding="utf-8")
            running.append(subprocess.Popen([*PIP, *options, "-r", str(file)]))
        codes = [process.wait() for process in running]
    if not any(codes):
        # Files that are not valid Python are left out, as pip does.
        place = sysconfig.get_path("purelib")
        compileall.compile_dir(place, quiet=2, workers=0, rx=SELDOM_IMPORTED)
    return max(codes)


def split(lock: str, parts: int) -> list[str]:
    """Return the texts of at most ``parts`` lock files, which together have all packages of
    ``lock``, each with its hashes.
    """
    packages = split_lock(lock)
    return ["".join(packages[number::parts]) for number in range(min(parts, len(packages)))]


def split_lock(text: str) -> list[str]:
    """Return the packages of a lock file, each with its hashes."""
    return re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

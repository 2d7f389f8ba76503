"""The environments of the group ``compat``: one for each supported version of Airflow, except the
one in the project's own environment.

The files ``requirements/airflow-*.txt`` have only the packages that differ from
``requirements/tested.txt``. ``bin/lock`` writes them with ``compat.py ALL TESTED``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import packages
from pip_install import split_lock
from trouble import SetupError

_NAME = "airflow-"


def environments(root: Path) -> dict[str, packages.Environment]:
    """Return an environment for each version of Airflow except the one in the project's own
    environment.
    """
    return {
        lock.stem.removeprefix(_NAME): packages.Environment(
            root,
            f".venv-{lock.stem}",
            "requirements/tested.txt",
            True,
            gigabytes=3,
            instead=f"requirements/{lock.name}",
        )
        for lock in sorted((root / "requirements").glob(f"{_NAME}*.txt"))
    }


def choose(root: Path, versions: Sequence[str]) -> dict[str, packages.Environment | None]:
    """Return the environments of the named versions of Airflow; of all versions if none is named.
    Raise ``SetupError`` for an unknown version.

    The version of the project's own environment has the value None, because its tests run in this
    process's environment. If ``versions`` is empty, this version is the first one in the result.
    """
    every = {tested_version(root): None, **environments(root)}
    for version in versions:
        if version not in every:
            known = ", ".join(sorted(every))
            raise SetupError(f"Airflow {version} has no environment for tests: choose from {known}")
    return {version: every[version] for version in versions or every}


def tested_version(root: Path) -> str:
    """Return the version of Airflow in the project's own environment, such as 3.3."""
    lock = (root / "requirements/tested.txt").read_text(encoding="utf-8")
    [pin] = re.findall(r"^apache-airflow==(\d+\.\d+)", lock, flags=re.MULTILINE)
    return pin


def main(every: str, tested: str) -> None:
    """Print the packages of the lock file ``every`` that the lock file ``tested`` does not have."""
    known = set(split_lock(Path(tested).read_text(encoding="utf-8")))
    needed = split_lock(Path(every).read_text(encoding="utf-8"))
    print("".join(each for each in needed if each not in known), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs of Java's maintenance procedures: the table before, the call, and the files after.

Each run is copied to a place that a test may change.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.folder import as_new_files, golden_archive
from tests.golden.relocated import relocate

__all__ = ["RefereeRun", "referee_run"]


@dataclass(frozen=True)
class RefereeRun:
    """One procedure, on a copy of the table before it."""

    name: str
    root: Path
    """The directory of the copy."""
    result: dict[str, Any]
    """The content of ``result.json``."""
    as_written: Path
    """The folder of the run, with the tables ``before`` and ``after`` as Java wrote them."""

    def files(self) -> set[str]:
        """Return the paths of all files of the copy, below its directory."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix() for path in found}

    def files_after(self) -> set[str]:
        """Return the paths of the files that Java left."""
        root = self.as_written / "after/table"
        found = (path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix() for path in found}


def referee_run(name: str, target: Path) -> RefereeRun:
    """Copy the table before a run to ``target``."""
    run = _unpacked() / name
    expected = json.loads((run / "before/expected.json").read_text(encoding="utf-8"))
    relocate(run / "before/table", target, expected["original_root"])
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return RefereeRun(name, target, result, run)


@cache
def _unpacked() -> Path:
    place = Path(tempfile.mkdtemp(prefix="golden-referee-")).resolve()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    with tarfile.open(golden_archive("referee")) as archive:
        archive.extractall(place, filter=as_new_files)
    return place / "referee"

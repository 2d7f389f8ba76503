"""Prints every file of a large table: text for people should not take longer than JSON for
programs.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from benchmarks.question import Candidate, Question
from benchmarks.sample_manifest import DATABASE, write_sample_table
from lakeformat.cli.app import app

__all__ = ["QUESTION"]

TABLE = "keyed"

Names = Callable[[], list[str]]
"""Returns the file names that are in the output."""


class _Terminal(io.TextIOWrapper):
    """A file object that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def _printing(
    read_names: Callable[[str], list[str]], *words: str, columns: int = 0
) -> Candidate[Path, Names]:
    """Return a candidate that runs ``lake files`` into a file, or into a terminal with this number
    of ``columns``.
    """

    def candidate(warehouse: Path, folder: Path) -> Callable[[], Names]:
        shown = folder / "shown"
        command = ["files", f"{DATABASE}.{TABLE}", "-w", str(warehouse), *words]
        stream = _Terminal if columns else io.TextIOWrapper

        def work() -> Names:
            terminal = {"TERM": "xterm", "COLUMNS": str(columns)}
            with (
                shown.open("wb") as file,
                stream(file) as out,
                redirect_stdout(out),
                patch.dict(os.environ, terminal if columns else {}),
            ):
                app(command, standalone_mode=False)
            return lambda: read_names(shown.read_text())

        return work

    return candidate


def _in_array(text: str) -> list[str]:
    return [file["file_path"].rpartition("/")[2] for file in json.loads(text)]


def _in_grid(text: str) -> list[str]:
    """Return the values of the last column; a line that begins with a blank continues the line
    above.
    """
    heading, *lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    names: list[str] = []
    for line in lines:
        piece = line[heading.rindex("file") :]
        if line.startswith(" "):
            names[-1] += piece
        else:
            names.append(piece)
    return names


QUESTION: Question[Path, Names] = Question(
    sentence="Do people wait longer for `lake files` than programs do for `--json`?",
    rows=100_000,
    make_data=lambda folder, rows: write_sample_table(folder, TABLE, rows, is_keyed=True),
    open_data=lambda folder: folder,
    candidates={
        "--json": _printing(_in_array, "--json"),
        "into a file": _printing(_in_grid),
        "terminal, folded": _printing(_in_grid, columns=120),
    },
    baseline="--json",
    answer=lambda names: names(),
    targets={"into a file": 0.9, "terminal, folded": 0.4},
)

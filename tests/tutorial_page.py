"""The tutorial as steps: files to save, and commands with their shown output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "Command", "SavedFile", "shows", "steps"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_ANY = "…"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that the reader saves, by its path in the tutorial's folder."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the reader types, and the output that the page shows."""

    text: str
    shown: str


def steps() -> Iterator[SavedFile | Command]:
    """Yield the files and commands in the order of the page; every block is one of them."""
    for kind, name, text in _BLOCK.findall(PAGE.read_text()):
        if name:
            yield SavedFile(name, text)
            continue
        assert kind == "console", f"a block of {PAGE.name} is neither a file nor commands: {text}"
        yield from (
            Command(command, shown)
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
        )


def shows(output: str, shown: str) -> bool:
    """Return True if the output of a command is the shown one; ``…`` stands for any text."""
    wanted = "".join(".*" if part == _ANY else re.escape(part) for part in _parts(shown))
    lines = "\n".join(line.rstrip() for line in output.splitlines())
    return re.fullmatch(wanted, lines.strip("\n"), re.DOTALL) is not None


def _parts(shown: str) -> list[str]:
    """Return the text between the marks, and the marks."""
    lines = "\n".join(line.rstrip() for line in shown.splitlines())
    return [part for part in re.split(f" *({_ANY}) *", lines.strip("\n")) if part]

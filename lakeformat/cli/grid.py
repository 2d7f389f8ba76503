# SPDX-License-Identifier: Apache-2.0
"""Prints columns of text under headings, for a terminal, a file or a pipe.

This module joins the lines itself, because a Rich table is slow with a hundred thousand rows. Rich
only measures the terminal, styles texts, and folds text that does not fit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

__all__ = ["GridColumn", "print_grid"]

UNBOUNDED_WIDTH: Final = 10_000
"""The width for files and pipes, in characters. Long lines are not wrapped, so that a search finds
them.
"""

_ENOUGH = 16
"""The smallest width, in characters, to which a column is folded. If the columns are then still too
wide, each row is printed as a block.
"""
_TOO_NARROW = 8
"""The smallest width, in characters, to which a text in a block is folded. With less room the text
is not folded, because a line beyond the edge of the terminal is easier to read.
"""
_GAP = "  "
_LINES_AT_ONCE = 1024
# Control characters in names are replaced, because a terminal would obey them; \n is kept.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A heading and the text of each row."""

    heading: str
    texts: Sequence[str]
    is_number: bool = False
    styles: Mapping[str, str] = field(default_factory=dict)
    """Maps texts of rows to Rich's styles for a coloured terminal. Other texts have no style."""


def print_grid(columns: Sequence[GridColumn]) -> None:
    """Print rows under headings; if the terminal is too narrow, print each row as a block of
    lines.
    """
    console = Console(
        highlight=False, width=None if sys.stdout.isatty() else UNBOUNDED_WIDTH, soft_wrap=True
    )
    cells = [_Cells(column, console) for column in columns]
    gaps = len(_GAP) * (len(cells) - 1)
    if sum(min(column.width, _ENOUGH) for column in cells) + gaps > console.width:
        _write(_blocks(cells, console.width))
        return
    _shrink(cells, console.width - gaps)
    _write(_rows(cells))


class _Cells:
    def __init__(self, column: GridColumn, console: Console) -> None:
        self.heading = column.heading
        self.is_number = column.is_number
        self.texts = [text if text.isprintable() else _spelled(text) for text in column.texts]
        self.width = max(map(_width, (column.heading, *self.texts)))
        """The printed width in characters: the width of the widest text, until ``_shrink`` lowers
        it.
        """
        self.folds = any("\n" in text for text in self.texts)
        styles = {column.heading: "bold", **column.styles}
        self._styled = {text: _styled(console, text, style) for text, style in styles.items()}

    def pieces(self, text: str) -> list[str]:
        """Return the lines of a cell, none wider than the column."""
        if _width(text) <= self.width:
            return text.split("\n")
        return [piece for line in text.split("\n") for piece in _folded(line, self.width)]

    def padded(self, text: str) -> str:
        blanks = " " * (self.width - (len(text) if text.isascii() else cell_len(text)))
        shown = self._styled.get(text, text) if self._styled else text
        return blanks + shown if self.is_number else shown + blanks

    def styled(self, text: str) -> str:
        return self._styled.get(text, text)

    def headed(self) -> str:
        return self.padded(self.heading)


def _shrink(cells: Sequence[_Cells], room: int) -> None:
    """Lower the widths of the widest columns until all columns fit into ``room`` characters
    together.
    """
    if sum(column.width for column in cells) <= room:
        return
    widths = range(_ENOUGH, max(column.width for column in cells))
    most = max(w for w in widths if sum(min(column.width, w) for column in cells) <= room)
    for column in cells:
        column.folds = column.folds or column.width > most
        column.width = min(column.width, most)


def _rows(cells: Sequence[_Cells]) -> Iterator[str]:
    yield _GAP.join(column.headed() for column in cells).rstrip(" ")
    if not any(column.folds for column in cells):
        for line in zip(*(map(column.padded, column.texts) for column in cells), strict=True):
            yield _GAP.join(line).rstrip(" ")
        return
    for row in zip(*(column.texts for column in cells), strict=True):
        pieces = [column.pieces(text) for column, text in zip(cells, row, strict=True)]
        for line in zip_longest(*pieces, fillvalue=""):
            padded = (column.padded(piece) for column, piece in zip(cells, line, strict=True))
            yield _GAP.join(padded).rstrip(" ")


def _blocks(cells: Sequence[_Cells], width: int) -> Iterator[str]:
    """Yield the lines of each row as a block. Each cell begins a new line, to the right of its
    heading.
    """
    left = max(cell_len(column.heading) for column in cells)
    room = width - left - len(_GAP)
    names = [
        column.styled(column.heading) + " " * (left - cell_len(column.heading)) for column in cells
    ]
    for number, row in enumerate(zip(*(column.texts for column in cells), strict=True)):
        if number:
            yield ""
        for column, name, text in zip(cells, names, row, strict=True):
            lines = text.split("\n")
            if room >= _TOO_NARROW:
                lines = [piece for line in lines for piece in _folded(line, room)]
            for first, line in zip_longest([name], lines if text else [], fillvalue=""):
                if text:
                    yield f"{first or ' ' * left}{_GAP}{column.styled(line)}"


def _width(text: str) -> int:
    if text.isascii() and text.isprintable():
        return len(text)
    return max(map(cell_len, text.split("\n")))


def _folded(line: str, width: int) -> list[str]:
    """Return ``line`` in pieces no wider than ``width``, cut at spaces if the line has spaces."""
    if _width(line) <= width:
        return [line]
    if line.isascii() and " " not in line:
        return [line[start : start + width] for start in range(0, len(line), width)]
    console = Console(width=width)
    return [text.plain.rstrip(" ") for text in Text(line).wrap(console, width, overflow="fold")]


def _spelled(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _styled(console: Console, text: str, style: str) -> str:
    with console.capture() as captured:
        console.print(Text(text, style=style), end="")
    return captured.get()


def _write(lines: Iterable[str]) -> None:
    """Write many lines with each call, because a terminal takes as long for one line as for
    many.
    """
    left = iter(lines)
    while some := list(islice(left, _LINES_AT_ONCE)):
        sys.stdout.write("\n".join(some) + "\n")

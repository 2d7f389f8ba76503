"""A copy of a golden table whose commits appear one by one, as if Java made them meanwhile."""

from __future__ import annotations

import re
from pathlib import Path

import lakeformat as lake
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate

__all__ = ["GrowingTable"]


class GrowingTable:
    """The table at its first metadata file; ``grow`` makes the next ones current."""

    def __init__(self, place: Path, name: str, files: int = 1) -> None:
        golden = iceberg_table(name)
        self.root = place / "t"
        relocate(golden.as_written, self.root, golden.expected["original_root"])
        self._hidden = place / "hidden"
        self._hidden.mkdir()
        metadata = self.root / "metadata"
        (metadata / "version-hint.text").unlink(missing_ok=True)
        self._files = sorted(metadata.glob("*.metadata.json"), key=_number)
        for file in self._files:
            file.rename(self._hidden / file.name)
        self._shown = 0
        self.grow(files)

    def open(self, branch: str = "main") -> lake.IcebergTable:
        """Open the table; it sees later commits, too."""
        table = lake.open_table(str(self.root), branch=branch)
        assert isinstance(table, lake.IcebergTable)
        return table

    def grow(self, files: int | None = None) -> None:
        """Make the next metadata files current, by default all of them."""
        end = len(self._files) if files is None else self._shown + files
        for file in self._files[self._shown : end]:
            (self._hidden / file.name).rename(file)
        self._shown = end


def _number(file: Path) -> int:
    found = re.search(r"\d+", file.name)
    assert found is not None
    return int(found[0])

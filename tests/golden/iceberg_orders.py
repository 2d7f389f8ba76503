"""A warehouse with an Iceberg table whose commits appear one after the other."""

from __future__ import annotations

from pathlib import Path

from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate

GOLDEN = "mor_position_deletes"
"""Five commits: an append, three with deletes, and the last an overwrite."""


class IcebergOrders:
    """The table ``shop.orders``; its newest commits can be hidden."""

    def __init__(self, warehouse: Path) -> None:
        golden = iceberg_table(GOLDEN)
        self.root = warehouse / "shop" / "orders"
        self.root.parent.mkdir(parents=True)
        relocate(golden.as_written, self.root, golden.expected["original_root"])
        self.snapshots = [each["snapshot_id"] for each in golden.expected["snapshots"]]
        (self.root / "metadata/version-hint.text").unlink(missing_ok=True)

    def hide_last(self) -> Path:
        """Take back the last commit: the table is as before it."""
        newest = max(self.root.glob("metadata/v*.metadata.json"), key=_number)
        return newest.rename(newest.with_suffix(".hidden"))

    def commit_last(self, hidden: Path) -> None:
        """Publish the hidden commit."""
        hidden.rename(hidden.with_suffix(".json"))


def _number(file: Path) -> int:
    return int(file.name.removeprefix("v").split(".")[0])

"""Makes an earlier state of a golden store its newest one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.mixed.edited_stores import edit, newest_metadata

__all__ = ["go_back"]


def go_back(store: Path, snapshot: dict[str, Any] | None, **properties: str) -> None:
    """Make an earlier snapshot the newest one of a store, as it was then."""
    written = json.loads(newest_metadata(store).read_text())
    number = snapshot["sequence_number"] if snapshot else 0
    kept = [each for each in written["snapshots"] if each["sequence-number"] <= number]
    ids = {each["snapshot-id"] for each in kept}
    newest = snapshot["snapshot_id"] if snapshot else None
    refs = {"main": {"snapshot-id": newest, "type": "branch"}} if snapshot else {}
    edit(
        store,
        **{
            "snapshots": kept,
            "snapshot-log": [
                each for each in written["snapshot-log"] if each["snapshot-id"] in ids
            ],
            "statistics": [each for each in written["statistics"] if each["snapshot-id"] in ids],
            "current-snapshot-id": newest,
            "refs": refs,
            "last-sequence-number": number,
        },
        properties=properties,
    )

"""Changes the metadata of a store in a directory, as a damaged or foreign writer would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["edit", "newest_metadata"]


def newest_metadata(store: Path) -> Path:
    number = (store / "metadata/version-hint.text").read_text().strip()
    return store / f"metadata/v{number}.metadata.json"


def edit(store: Path, **members: Any) -> None:
    """Change members of the newest metadata; of ``properties`` only those that are given."""
    path = newest_metadata(store)
    found = json.loads(path.read_text())
    for name, value in members.items():
        found[name] = found[name] | value if name == "properties" else value
    path.write_text(json.dumps(found))

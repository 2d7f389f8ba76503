"""Publishes snapshot 2 of a sample table in each round; snapshot 1 is published once, before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lakeformat.paimon.handle import TableHandle
from lakeformat.publish.publish import publish_head
from lakeformat.publish.versions import FIRST_NUMBER

__all__ = ["publish_first", "publishing_second"]


def publish_first(handle: TableHandle) -> None:
    """Publish snapshot 1, and note its metadata files: each round begins with only these."""
    publish_head(handle, None, follows_upkeep=False)
    _noted(handle).write_text("\n".join(each.name for each in _metadata(handle).iterdir()))


def publishing_second(handle: TableHandle) -> Callable[[], dict[str, str]]:
    """Delete the published files of an earlier round; return a function that publishes
    snapshot 2.
    """
    kept = set(_noted(handle).read_text().split())
    for each in _metadata(handle).iterdir():
        if each.name not in kept:
            each.unlink()
    (_metadata(handle) / "version-hint.text").write_text(str(FIRST_NUMBER))

    def publish() -> dict[str, str]:
        report = publish_head(handle, None, follows_upkeep=False)
        assert not report.rebuilt
        return {"published": str(report.published)}

    return publish


def _metadata(handle: TableHandle) -> Path:
    return Path(handle.layout.root) / "metadata"


def _noted(handle: TableHandle) -> Path:
    return Path(f"{handle.layout.root}.txt")

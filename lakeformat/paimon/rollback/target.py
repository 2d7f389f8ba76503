# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot that a rollback restores."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.read.time_travel import newest_at
from lakeformat.paimon.snapshot_positions import require_number
from lakeformat.paimon.tags.source import Origin, find_origin
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.past_time import refuse_future
from lakeformat.tables.position import AnyPosition

__all__ = ["Target"]

_NO_WATERMARK = -(2**63)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a rollback, as the caller gave it."""

    snapshot: AnyPosition | None = None
    tag: str | None = None
    as_of: Moment | None = None
    watermark: int | None = None

    def found(self, handle: TableHandle) -> Origin:
        """Return the snapshot, and the tag that keeps it if the snapshot itself has expired.

        For a time or a watermark, return the last snapshot up to that time or watermark. Raise
        NotFoundError if there is no such snapshot, and InvalidRequestError unless exactly one
        argument was given.
        """
        return _find(handle, self.snapshot, self.tag, self.as_of, self.watermark)


def _find(
    handle: TableHandle,
    snapshot: AnyPosition | None,
    tag: str | None,
    as_of: Moment | None,
    watermark: int | None,
) -> Origin:
    said = {"snapshot": snapshot, "tag": tag, "as_of": as_of, "watermark": watermark}
    given = [f"{name}=" for name, value in said.items() if value is not None]
    if len(given) != 1:
        asked = " and ".join(given) or "nothing"
        raise InvalidRequestError(
            f"a rollback needs exactly one of snapshot=, tag=, as_of= and watermark=; got {asked}"
        )
    if as_of is not None:
        millis = to_millis(as_of)
        refuse_future("as_of", millis, handle.environment.now_millis())
        found = newest_at(handle, millis)
        if found is None:
            raise NotFoundError(
                f"{handle.uri} has no snapshot of {moment_text(millis)} or before: the table was "
                "empty then, or those snapshots have expired. A tag may keep one: pass tag="
            )
        return Origin(found)
    if watermark is not None:
        return _at_watermark(handle, watermark)
    found_origin = find_origin(handle, snapshot=snapshot, tag=tag)
    return _live(handle, found_origin)


def _live(handle: TableHandle, origin: Origin) -> Origin:
    """Return the snapshot without its tag if its own file still exists, otherwise ``origin``."""
    number = origin.snapshot.id
    found = read_snapshot_if_present(handle.storage, handle.layout, number)
    return Origin(origin.snapshot) if found == origin.snapshot else origin


def _at_watermark(handle: TableHandle, watermark: int) -> Origin:
    """Return the last snapshot whose watermark is at most ``watermark``.

    A snapshot without a watermark has the watermark of the snapshot before it. Raise NotFoundError
    if no snapshot is found.
    """
    require_number("watermark must be a number of milliseconds", watermark)
    last: Origin | None = None
    current: int | None = None
    for number in snapshot_ids(handle.storage, handle.layout):
        snapshot = read_snapshot_if_present(handle.storage, handle.layout, number)
        if snapshot is None:
            continue
        if snapshot.watermark not in (None, _NO_WATERMARK):
            current = snapshot.watermark
        if current is not None and current <= watermark:
            last = Origin(snapshot)
    if last is None:
        raise NotFoundError(
            f"{handle.uri} has no snapshot with watermark {watermark} or earlier: it never had "
            "one, or those snapshots have expired. Pass a later watermark, or snapshot= or tag="
        )
    return last

# SPDX-License-Identifier: Apache-2.0
"""Tags: ``tag/tag-<name>``, snapshots that remain readable after ``snapshot-<n>`` has expired."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lakeformat.errors import NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot, snapshot_reader
from lakeformat.storage import Storage
from lakeformat.tables.create_once import create_or_find
from lakeformat.tables.file_name_part import check_file_name_part, suffixed
from lakeformat.tables.json_file import decode_json_file
from lakeformat.tables.parallel import in_parallel
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import is_whole_number

__all__ = [
    "Tag",
    "create_tag",
    "delete_tag",
    "read_tag",
    "read_tag_if_present",
    "read_tags",
    "replace_tag",
    "snapshot_content",
    "tag_names",
]

_SHOWN = 20
"""The largest number of tag names that an error message lists."""
NANOS_PER_MICRO = 1_000
_PARTS = range(5, 8)
"""The allowed lengths of ``tagCreateTime``: year, month, day, hour and minute, then optionally
second and nanosecond.
"""

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


@dataclass(frozen=True, slots=True)
class Tag:
    """A named snapshot; a tag without ``create_time`` or ``time_retained`` never expires."""

    name: str
    snapshot: Snapshot
    create_time: datetime | None = None
    """The creation time without a time zone, to the microsecond. This library writes and reads it
    as UTC.
    """
    time_retained: timedelta | None = None

    def to_json(self) -> bytes:
        """Return the content of the tag file: the snapshot and the two times, if set."""
        members = self.snapshot.members()
        if self.create_time is not None:
            members["tagCreateTime"] = _time_parts(self.create_time)
        if self.time_retained is not None:
            members["tagTimeRetained"] = self.time_retained.total_seconds()
        return json.dumps(members, indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_json(
        cls,
        name: str,
        members: Mapping[str, Any],
        *,
        build: Callable[[Mapping[str, Any]], Snapshot] = Snapshot.from_json,
    ) -> Tag:
        """Return the tag of a parsed tag file; unknown members are ignored.

        ``build`` returns the snapshot in the file. Raise KeyError, TypeError or ValueError for a
        damaged file, and UnsupportedError for a newer version.
        """
        created, retained = members.get("tagCreateTime"), members.get("tagTimeRetained")
        return cls(
            name,
            build(members),
            None if created is None else _create_time(created),
            None if retained is None else _time_retained(retained),
        )


def tag_names(storage: Storage, layout: TableLayout) -> list[str]:
    """Return the names of all tags, sorted."""
    files = (info.name for info in storage.list(layout.tag_directory) if not info.is_directory)
    return sorted(name for name in (suffixed(file, "tag-") for file in files) if name is not None)


def read_tags(storage: Storage, layout: TableLayout, threads: int | None = 1) -> list[Tag]:
    """Return every tag, sorted by name; a tag that is deleted meanwhile is left out.

    Up to ``threads`` tags are read at the same time; ``threads=None`` uses the default of
    ``in_parallel``.
    """
    names = tag_names(storage, layout)
    found = in_parallel(partial(read_tag_if_present, storage, layout), names, threads)
    return [tag for tag in found if tag is not None]


def read_tag(storage: Storage, layout: TableLayout, name: str) -> Tag:
    """Return the tag ``name``.

    Raise NotFoundError, which lists existing tags, if the tag does not exist. Raise
    CorruptTableError if its file is damaged, and InvalidRequestError for an invalid name.
    """
    tag = read_tag_if_present(storage, layout, name)
    if tag is None:
        names = tag_names(storage, layout)
        shown = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
        there = f"its tags are {shown}" if names else "the table has no tag"
        near = closest(name, names)
        raise NotFoundError(f"{storage.uri(layout.root)} has no tag {name!r}; {there}{near}")
    return tag


def read_tag_if_present(storage: Storage, layout: TableLayout, name: str) -> Tag | None:
    """Return a tag; None if it does not exist.

    Raise CorruptTableError if the file is damaged, and InvalidRequestError for an invalid name.
    """
    path = layout.tag(_checked(name))
    try:
        content = storage.read(path)
    except NotFoundError:
        return None
    build = partial(Tag.from_json, name, build=snapshot_reader(storage, layout))
    return decode_json_file(content, storage.uri(path), build, Remedy.TAG)


def snapshot_content(storage: Storage, layout: TableLayout, name: str) -> bytes:
    """Return the snapshot of the tag ``name`` as the content of a snapshot file.

    Raise NotFoundError if the tag does not exist, and CorruptTableError if the file is damaged.
    """
    path = layout.tag(_checked(name))
    members = decode_json_file(storage.read(path), storage.uri(path), dict, Remedy.TAG)
    for own in ("tagCreateTime", "tagTimeRetained"):
        members.pop(own, None)
    return json.dumps(members, indent=2, ensure_ascii=False).encode()


def create_tag(storage: Storage, layout: TableLayout, tag: Tag) -> bool:
    """Write the file of a tag; return False and change nothing if a tag has this name."""
    return create_or_find(storage, layout.tag(_checked(tag.name)), tag.to_json())


def replace_tag(storage: Storage, layout: TableLayout, tag: Tag) -> None:
    """Replace the file of the tag ``tag.name``."""
    storage.overwrite(layout.tag(_checked(tag.name)), tag.to_json())


def delete_tag(storage: Storage, layout: TableLayout, name: str) -> None:
    """Delete the file of a tag, but no file that its snapshot refers to."""
    storage.delete(layout.tag(_checked(name)))


def _checked(name: str) -> str:
    check_file_name_part("tag name", name)
    return name


def _time_parts(moment: datetime) -> list[int]:
    """Return a time as ``tagCreateTime``: trailing zero seconds and nanoseconds are left out."""
    parts = [*moment.timetuple()[:6], moment.microsecond * NANOS_PER_MICRO]
    while len(parts) > _PARTS.start and parts[-1] == 0:
        del parts[-1]
    return parts


def _create_time(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).replace(tzinfo=None)
        except ValueError:
            raise ValueError(f"tagCreateTime is {value!r}, which is not a time") from None
    if (
        not isinstance(value, list)
        or len(value) not in _PARTS
        or not all(map(is_whole_number, value))
    ):
        raise ValueError(f"tagCreateTime is {value!r}, not [year, month, day, hour, minute, …]")
    year, month, day, hour, minute, second, nanos = [*value, 0, 0][: _PARTS.stop - 1]
    micros = nanos // NANOS_PER_MICRO
    try:
        return datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - no zone
    except OverflowError as reason:
        raise ValueError(f"tagCreateTime is {value!r}: {reason}") from None


def _time_retained(value: Any) -> timedelta:
    try:
        return timedelta(seconds=_seconds(value))
    except OverflowError as reason:
        raise ValueError(f"tagTimeRetained is {value!r}: {reason}") from None


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(
            f"tagTimeRetained is {value!r}, neither a number of seconds nor a text like 'PT24H'"
        )
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds

"""Changelogs without files of their own: whether they tell what their commits added."""

from __future__ import annotations

from functools import cache

from lakeformat.errors import NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import Storage

__all__ = ["NO_PRODUCER", "ChangelogOwnership"]

NO_PRODUCER = "none"


class ChangelogOwnership:
    """What the changelogs of one branch tell of, by its schemas: each of those is read once."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._had_producer = cache(lambda number: _has_producer(storage, layout, number))
        self._newest = cache(lambda: latest_schema_id(storage, layout))

    def needs_files(self, changelog: Snapshot) -> bool:
        """Whether a changelog leads to any file.

        Without files of its own it tells what its commit added only if there was no producer then,
        or is none now: otherwise another snapshot tells of that, or nothing does. Its lists may be
        there all the same, where a tag has kept them when its snapshot expired.
        """
        if changelog.changelog_manifest_list is not None:
            return True
        newest = self._newest()
        schemas = [changelog.schema_id, *([] if newest is None else [newest])]
        return not all(self._had_producer(number) for number in schemas)


def _has_producer(storage: Storage, layout: TableLayout, number: int) -> bool:
    try:
        options = read_schema(storage, layout, number).table_options
    except NotFoundError:
        return False  # then more is kept than needed
    return options.changelog_producer != NO_PRODUCER

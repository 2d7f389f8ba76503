# SPDX-License-Identifier: Apache-2.0
"""Decides if a changelog without a changelog list consists of the data files that its commit
added.
"""

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
    """Decides which changelogs of one branch need files."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._had_producer = cache(lambda number: _has_producer(storage, layout, number))
        self._newest = cache(lambda: latest_schema_id(storage, layout))

    def needs_files(self, changelog: Snapshot) -> bool:
        """Return True if files of the changelog must be kept.

        A changelog with a changelog list needs the files of the list. A changelog without a list
        needs the data files that its commit added; the delta list names them. There is one
        exception: a changelog without a list needs no files if both the schema of its commit and
        the newest schema set a changelog producer.
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
        return False  # unclear: keep the files, which is safe
    return options.changelog_producer != NO_PRODUCER

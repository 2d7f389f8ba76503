# SPDX-License-Identifier: Apache-2.0
"""Creates the writers of the files of one bucket of a primary-key table.

Data files of each level, and changelog files, have their own options.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakeformat.paimon.datafile.external_paths import ExternalPaths
from lakeformat.paimon.datafile.key_order import Keys
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import Storage
from lakeformat.types.types import DataField

__all__ = ["KeyValueFiles"]


class KeyValueFiles:
    """Creates the writers of a bucket, whose file names share one uuid and one counter."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        fields: tuple[DataField, ...],
        key_columns: Sequence[str],
        options: TableOptions,
        unique: str,
        *,
        external: ExternalPaths | None = None,
    ) -> None:
        """Create no writer yet; ``key_columns`` is the primary key without partition columns."""
        self._names = DataFileNames(options, unique)
        self._options, self._directory = options, directory
        self._writer = partial(
            KeyValueWriter, storage, directory, fields, key_columns, external=external
        )

    def new_run(self, level: int) -> KeyValueWriter:
        """Return a writer for one sorted run of a level; each key must occur once."""
        names = partial(self._names.next_of_level, level)
        return self._writer(self._options.of_level(level), names, keys=Keys.ONCE)

    def next_run(self, level: int) -> tuple[str, str]:
        """Return a name and path for a data file of ``level``, which the caller writes itself."""
        name = self._names.next_of_level(level)
        return name, f"{self._directory}/{name}"

    def new_changelog(self, level: int = 0) -> KeyValueWriter:
        """Return a writer of changelog files, with the options of ``level``; a key may repeat."""
        names = partial(self._names.next_changelog, level)
        return self._writer(self._options.of_changelog(level), names, keys=Keys.REPEATED)

"""Names of new data and changelog files of one writer: one unique part, one counter."""

from __future__ import annotations

from itertools import count

from lakeformat.files.file_format import FileFormat, file_extension
from lakeformat.paimon.layout import data_file_name
from lakeformat.paimon.options import TableOptions

__all__ = ["DataFileNames"]


class DataFileNames:
    """Data and changelog files share the counter; ``unique`` belongs to this writer alone."""

    def __init__(self, options: TableOptions, unique: str) -> None:
        self._options = options
        self._unique = unique
        self._numbers = count()

    def next_data(self) -> str:
        """The name of the next data file."""
        return self._next(self._options.data_file_prefix, self._options)

    def next_of_level(self, level: int) -> str:
        """The name of the next data file of a level of a primary-key table."""
        return self._next(self._options.data_file_prefix, self._options.of_level(level))

    def next_changelog(self, level: int = 0) -> str:
        """The name of the next changelog file, of those beside data files of ``level``."""
        return self._next(self._options.changelog_file_prefix, self._options.of_changelog(level))

    def _next(self, prefix: str, options: TableOptions) -> str:
        extension = file_extension(
            FileFormat(options.file_format),
            options.file_compression,
            include_compression=options.file_suffix_include_compression,
        )
        return data_file_name(prefix, self._unique, next(self._numbers), extension)

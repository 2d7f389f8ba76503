# SPDX-License-Identifier: Apache-2.0
"""The Iceberg format version of published metadata, and its upgrade."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.handle import TableHandle

__all__ = ["HAS_ROW_IDS", "refuse_downgrade", "upgraded"]

HAS_ROW_IDS = 3
"""Since this format version rows have ids and are deleted by deletion vectors."""


def upgraded(metadata: TableMetadata, version: int) -> TableMetadata:
    """Return the metadata in format version ``version``, or unchanged if its version is not older.

    All files remain valid. The next snapshot gives ids to the rows of files that have none.
    """
    if metadata.format_version >= version:
        return metadata
    next_row_id = 0 if version >= HAS_ROW_IDS else None
    return replace(metadata, format_version=version, next_row_id=next_row_id)


def refuse_downgrade(published: TableMetadata, handle: TableHandle) -> None:
    """Raise ``UnsupportedError`` if the option ``metadata.iceberg.format-version`` is older than
    the version of the published metadata.
    """
    option, asked = type(handle.options).iceberg_format_version, handle.options
    if asked.iceberg_format_version >= published.format_version:
        return
    raise UnsupportedError(
        f"the Iceberg metadata of {handle.uri} has the format version "
        f"{published.format_version}, but {option.key!r} is {asked.iceberg_format_version}, and no "
        "Iceberg table returns to an older version. Set the option to "
        f"{published.format_version}. Or, if no reader needs the published history, delete the "
        f"directory {published.location.rstrip('/')}/metadata and run `lake publish "
        f"{handle.argument}`: that publishes the newest snapshot as another Iceberg table"
    )

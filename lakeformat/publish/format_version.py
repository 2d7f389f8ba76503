# SPDX-License-Identifier: Apache-2.0
"""The Iceberg format version of published metadata, and its upgrade."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.place import versions_of

__all__ = ["HAS_ROW_IDS", "refuse_downgrade", "refuse_lower_option", "upgraded"]

HAS_ROW_IDS = 3
"""The first format version with row ids and deletion vectors."""


def upgraded(metadata: TableMetadata, version: int) -> TableMetadata:
    """Return the metadata in format version ``version``; metadata in a newer version is unchanged.

    All files remain valid. The next snapshot gives ids to the rows of files without row ids.
    """
    if metadata.format_version >= version:
        return metadata
    next_row_id = 0 if version >= HAS_ROW_IDS else None
    return replace(metadata, format_version=version, next_row_id=next_row_id)


def refuse_downgrade(published: TableMetadata, handle: TableHandle) -> None:
    """Raise ``UnsupportedError`` if the option ``metadata.iceberg.format-version`` is below the
    format version of the metadata.
    """
    option, asked = type(handle.options).iceberg_format_version, handle.options
    if asked.iceberg_format_version >= published.format_version:
        return
    raise UnsupportedError(
        f"the Iceberg metadata of {handle.uri} has the format version "
        f"{published.format_version}, but {option.key!r} is {asked.iceberg_format_version}, and an "
        "Iceberg table cannot return to an older version. Set the option to "
        f"{published.format_version}. Or, if no reader needs the published history, delete the "
        f"directory {published.location.rstrip('/')}/metadata, set the option, and run `lake "
        f"publish {handle.argument}`: that publishes the table again, as another Iceberg table"
    )


def refuse_lower_option(before: TableSchema, changed: TableHandle) -> None:
    """Raise ``UnsupportedError`` if changed options ask for a format version below that of the
    published metadata.

    The metadata is read only if an option of the publication has changed. If reading it raises
    ``InvalidRequestError``, do nothing: the publication raises this error, too.
    """
    if not changed.options.publishes_iceberg or _asked(before) == _asked(changed.schema):
        return
    try:
        newest = versions_of(changed).newest()
    except InvalidRequestError:
        return
    if newest is not None:
        refuse_downgrade(newest.metadata, changed)


def _asked(schema: TableSchema) -> dict[str, str]:
    options = schema.options.items()
    return {key: value for key, value in options if key.startswith(PUBLISHED_PREFIX)}

# SPDX-License-Identifier: Apache-2.0
"""Finds the directory of published metadata: the table's own, or one in the warehouse.

In the warehouse, the published tables are a Hadoop catalog for Iceberg readers. The metadata of a
branch is always in the directory of the branch.
"""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.create.new_table import location_at
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DATABASE_SUFFIX, MAIN_BRANCH
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import ExternalRoots
from lakeformat.storage.links import require_no_link, within
from lakeformat.storage.location import location_of

__all__ = ["location_of_table", "require_place", "versions_of"]

_CATALOG = "iceberg"
"""The warehouse directory with the metadata of published tables, laid out as a Hadoop catalog."""


def versions_of(handle: TableHandle) -> PublishedVersions:
    """Return the published metadata files of a table or branch.

    Raise ``UnsupportedError`` if the metadata belongs in a warehouse directory that cannot be used.
    """
    table = ExternalRoots((location_of(location_of_table(handle)),))
    if handle.layout.branch != MAIN_BRANCH:
        return PublishedVersions(handle.storage, handle.layout.metadata_root, table)
    if handle.options.iceberg_is_at_table:
        return PublishedVersions(handle.storage, handle.layout.root)
    root = _root_in_warehouse(handle)
    return PublishedVersions(within(handle.storage, root), root, table)


def location_of_table(handle: TableHandle) -> str:
    """Return the URI of the table's data, spelled as in its Iceberg metadata."""
    return location_at(handle.storage, handle.layout.root).rstrip("/")


def require_place(handle: TableHandle) -> None:
    """Raise ``UnsupportedError`` if the metadata belongs in a warehouse directory that cannot be
    used.
    """
    if handle.layout.branch == MAIN_BRANCH and not handle.options.iceberg_is_at_table:
        _root_in_warehouse(handle)


def _root_in_warehouse(handle: TableHandle) -> str:
    """Return the directory ``<warehouse>/iceberg/<database>/<table>``.

    Raise ``UnsupportedError`` if there is no warehouse, or if the directory of the database or the
    table is a link.
    """
    above, _, table = handle.layout.root.rpartition("/")
    warehouse, slash, database = above.rpartition("/")
    if not database.endswith(DATABASE_SUFFIX):
        raise UnsupportedError(
            "the table's Iceberg metadata belongs in the warehouse, but the directory of "
            f"{handle.uri} is not <warehouse>/<database>{DATABASE_SUFFIX}/<table>: set "
            "'metadata.iceberg.storage-location' to 'table-location'"
        )
    catalog = f"{warehouse}{slash}{_CATALOG}"
    root = f"{catalog}/{database.removesuffix(DATABASE_SUFFIX)}/{table}"
    try:
        require_no_link(within(handle.storage, catalog), root)
    except InvalidRequestError:
        raise UnsupportedError(
            f"the table's Iceberg metadata belongs in {handle.storage.uri(root)}, but that "
            "directory or the one above it is a symbolic link, which can lead to another table: "
            "replace the link by a directory, or set 'metadata.iceberg.storage-location' to "
            "'table-location'"
        ) from None
    return root

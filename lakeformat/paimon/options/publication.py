# SPDX-License-Identifier: Apache-2.0
"""The options for Iceberg metadata of a table, with the names of Paimon.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import one_of, or_unset, whole_number
from lakeformat.paimon.options.option import Option

__all__ = ["AT_TABLE", "PublicationOptions"]

AT_TABLE, AT_WAREHOUSE = "table-location", "catalog-location"


class PublicationOptions:
    """The options for the place and the version of published Iceberg metadata."""

    iceberg_format_version = Option(
        "metadata.iceberg.format-version",
        whole_number(2, 3),
        "2",
        "Version of Iceberg's format in which the table is published. It can be raised; the next "
        "publication then upgrades the metadata.",
    )
    iceberg_storage_location = Option(
        "metadata.iceberg.storage-location",
        or_unset(one_of(AT_TABLE, AT_WAREHOUSE)),
        "",
        "The place of published Iceberg metadata: the table, or `iceberg/<database>/<table>` in "
        "the warehouse. Empty: the table for `metadata.iceberg.storage` = `table-location`, else "
        "the warehouse.",
    )

# SPDX-License-Identifier: Apache-2.0
"""Refuses Amoro's Mixed-Hive tables, which have their merged rows in the files of a Hive table.

Amoro adds files to the Hive table only in a full optimizing, and then changes the locations in the
Hive metastore. A commit to the base store alone would not change these locations, so readers of
Hive would see only a part of the committed rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import UnsupportedError

__all__ = ["HIVE_LOCATION", "refuse_mixed_hive", "refuse_store_of_mixed_hive"]

_MARKS = ("arctic.enabled", "arctic.enable")
"""The parameter that marks a Hive table as Mixed-Hive if it is true, and its earlier name."""
HIVE_LOCATION = "base.hive.location-root"
"""The property of both stores with the directory of the Hive table."""
_INSTEAD = (
    "Read the table with Amoro, or as a Hive table, which has the rows up to the newest full "
    "optimizing. To use it with this library, create a Mixed table and copy the rows, for example "
    "with spark_jobs.write_table(spark.table('db.t'), 'db.copy')"
)


def refuse_mixed_hive(parameters: Mapping[str, str], table: str) -> None:
    """Raise ``UnsupportedError`` if the parameters in a metastore are those of a Mixed-Hive
    table.
    """
    for mark in _MARKS:
        if parameters.get(mark, "").lower() == "true":
            raise UnsupportedError(
                f"table '{table}' is a Mixed-Hive table of Amoro: its parameter {mark!r} is true. "
                "This library neither reads nor writes such tables, because their merged rows are "
                f"in a Hive table. {_INSTEAD}"
            )


def refuse_store_of_mixed_hive(properties: Mapping[str, str], uri: str) -> None:
    """Raise ``UnsupportedError`` for a store of a Mixed-Hive table: readers of Hive would see
    only a part of a commit to it.
    """
    if (location := properties.get(HIVE_LOCATION)) is not None:
        raise UnsupportedError(
            f"{uri} is a store of a Mixed-Hive table of Amoro: its property {HIVE_LOCATION!r} is "
            f"{location!r}. After a commit to this store alone, readers of the Hive table would "
            f"see only a part of the rows. {_INSTEAD}. With "
            "the path of a metadata file of the store, lake.open_table('….metadata.json') opens "
            "the store alone as a read-only Iceberg table, in the state of that file"
        )

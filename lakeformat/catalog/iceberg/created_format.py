# SPDX-License-Identifier: Apache-2.0
"""Checks the format of a new table, and refuses properties that callers must not set in
``create_table`` or ``alter_table``.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import InvalidRequestError
from lakeformat.mixed.stores.mixed_hive import HIVE_LOCATION
from lakeformat.mixed.stores.properties import (
    CHANGE_IDENTIFIER,
    CLONING,
    PRIMARY_KEY,
    RENAMED_TO,
    TABLE_STORE,
    VERSION_FIELD,
)
from lakeformat.tables.credential_options import require_no_credential

__all__ = ["is_mixed", "require_harmless", "require_no_store_mark", "require_no_version_field"]

_OF_STORES = (TABLE_STORE, CHANGE_IDENTIFIER, PRIMARY_KEY, RENAMED_TO, CLONING, HIVE_LOCATION)
"""Properties that only stores of Mixed or Mixed-Hive tables have."""


def is_mixed(table_format: object) -> bool:
    """Return True for ``mixed`` and False for ``iceberg``; any other format raises
    ``InvalidRequestError``.
    """
    if table_format not in ("iceberg", "mixed"):
        raise InvalidRequestError(
            f"format must be 'iceberg' or 'mixed', got {table_format!r}: for Paimon tables open "
            "the catalog with format='paimon'"
        )
    return table_format == "mixed"


def require_harmless(properties: Mapping[str, str]) -> None:
    """Raise ``InvalidRequestError`` for properties that only stores of Mixed tables have, and for
    credentials.
    """
    for name, value in properties.items():
        require_no_credential(name, value)
    for name in _OF_STORES:
        if name in properties:
            raise InvalidRequestError(
                f"the property {name!r} cannot be set for a new table, because only the stores of "
                "a Mixed table have it: leave it out. A Mixed table is created with "
                "format='mixed' and primary_key"
            )


def require_no_store_mark(properties: Mapping[str, str | None], table: str) -> None:
    """Raise ``InvalidRequestError`` if an alter of an Iceberg table sets a property that only
    Mixed tables have: with most such properties the table could not be opened any more.
    """
    for name in (*_OF_STORES, VERSION_FIELD):
        if properties.get(name) is not None:
            raise InvalidRequestError(
                f"the property {name!r} of {table} cannot be set, because only Mixed tables have "
                "it: leave it out. adopt_table makes an Iceberg table a Mixed table"
            )


def require_no_version_field(properties: Mapping[str, str]) -> None:
    """Raise ``InvalidRequestError`` if ``properties`` has ``lake.version-field``, a property that
    only Mixed tables have.
    """
    if VERSION_FIELD in properties:
        raise InvalidRequestError(
            f"only Mixed tables have the property {VERSION_FIELD!r}: pass format='mixed' and "
            "primary_key, or leave the property out"
        )

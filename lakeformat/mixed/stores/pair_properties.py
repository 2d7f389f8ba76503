# SPDX-License-Identifier: Apache-2.0
"""The properties that make two Iceberg tables one Mixed table, or record an unfinished
operation.
"""

from __future__ import annotations

from lakeformat.mixed.stores.alter_record import ALTERED
from lakeformat.mixed.stores.detaching import DETACHING
from lakeformat.mixed.stores.properties import (
    CHANGE_IDENTIFIER,
    CLONING,
    FORMAT_MARK,
    KEPT_UPSERT,
    OPTIONAL_KEYS,
    PRIMARY_KEY,
    RENAMED_TO,
    REPEATED_KEYS,
    TABLE_STORE,
)

__all__ = ["OF_PAIRS"]

OF_PAIRS = (
    TABLE_STORE,
    PRIMARY_KEY,
    CHANGE_IDENTIFIER,
    RENAMED_TO,
    CLONING,
    DETACHING,
    OPTIONAL_KEYS,
    KEPT_UPSERT,
    REPEATED_KEYS,
    ALTERED,
    *FORMAT_MARK,
)
"""The properties that no ordinary Iceberg table has."""

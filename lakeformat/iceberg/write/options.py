# SPDX-License-Identifier: Apache-2.0
"""Refuses arguments of a write that only Paimon tables have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError

__all__ = ["refuse_options"]

_INSTEAD = {
    "kinds": "pass the rows and their kinds to upsert",
    "watermark": "keep the event time in a column, or in properties",
    "read_snapshot": "this version does not compare the table with an earlier state: leave it out",
}


def refuse_options(table: str, given: Mapping[str, Any]) -> None:
    """Raise if an argument is given that only Paimon tables have."""
    for name, value in given.items():
        if name not in _INSTEAD:
            raise InvalidRequestError(f"write has no argument {name!r}")
        if value is not None:
            raise UnsupportedError(
                f"{table} is an Iceberg table, whose write does not take {name}: {_INSTEAD[name]}"
            )

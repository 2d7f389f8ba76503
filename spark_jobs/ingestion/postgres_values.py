# SPDX-License-Identifier: Apache-2.0
"""Refuses dates and times of PostgreSQL that the driver psycopg2 would change."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["refuse_values_outside_the_calendar"]

_TYPES = {
    "PYDATE": ((1082, 1182),),
    "PYDATETIME": ((1114, 1115),),
    "PYDATETIMETZ": ((1184, 1185),),
    "PYTIME": ((1083, 1183), (1266, 1270)),
}
"""PostgreSQL's OIDs of types and of their array types, by the name of psycopg2's typecaster."""


def refuse_values_outside_the_calendar(engine: Any) -> None:
    """Make reads of ``engine`` raise ``ValueError`` for ``infinity``, ``-infinity`` and the time
    24:00, if its driver is psycopg2.

    psycopg2 reads ``infinity`` as the last date or time of Python, and 24:00 as 00:00.
    """
    if engine.dialect.driver == "psycopg2":
        import sqlalchemy as sql

        sql.event.listen(engine, "connect", _register)


def _register(connection: Any, _: Any) -> None:
    extensions = import_module("psycopg2.extensions")

    for name, types in _TYPES.items():
        for one, array in types:
            kind = extensions.new_type((one,), name, _reader(getattr(extensions, name)))
            extensions.register_type(kind, connection)
            extensions.register_type(extensions.new_array_type((array,), name, kind), connection)


def _reader(read: Callable[[str | None, Any], Any]) -> Callable[[str | None, Any], Any]:
    def checked(text: str | None, cursor: Any) -> Any:
        if text is not None and (text.endswith("infinity") or text.startswith("24:")):
            raise ValueError(f"{text!r} is not a date or time of the calendar")
        return read(text, cursor)

    return checked

# SPDX-License-Identifier: Apache-2.0
"""Refuses arguments that an operation takes only for tables of other formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lakeformat.errors import UnsupportedError

__all__ = ["RefusedArguments", "refuse_arguments"]

RefusedArguments: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each operation: each refused argument, with advice for the caller."""


def refuse_arguments(
    refused: RefusedArguments,
    operation: str,
    given: Mapping[str, Any],
    *,
    kind: str,
    location: str | None = None,
    is_skipped: bool = False,
) -> None:
    """Raise ``UnsupportedError`` if ``given`` has an argument that ``operation`` refuses.

    ``given`` maps names to values; a None counts as not given. The error names the table by
    its ``kind``, such as "an Iceberg table", and its ``location``.
    ``is_skipped`` sets the attribute ``lacks`` of the error, so a run over many tables skips this
    table.
    """
    for name, advice in refused.get(operation, {}).items():
        if given.get(name) is None:
            continue
        lacks = f"{operation} of {kind} does not take {name}: {advice}"
        where = f"{location} is {kind}, whose {operation} does not take {name}: {advice}"
        error = UnsupportedError(lacks if location is None else where)
        if is_skipped:
            error.lacks = lacks
        raise error

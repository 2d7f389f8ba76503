"""``$options``: what the table sets itself."""

from __future__ import annotations

from typing import NamedTuple

from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["OPTIONS"]


class _SetOption(NamedTuple):
    key: str
    value: str


def _options(source: Source) -> list[_SetOption]:
    """What the table sets, by key; defaults are in the reference of options."""
    return [_SetOption(*item) for item in sorted(source.handle.options.to_dict().items())]


OPTIONS = declare(
    "options",
    _options,
    [
        column("key", "STRING NOT NULL", "key"),
        column("value", "STRING NOT NULL", "value"),
    ],
)

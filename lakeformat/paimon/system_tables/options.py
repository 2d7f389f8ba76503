# SPDX-License-Identifier: Apache-2.0
"""``$options``: the options that the table sets."""

from __future__ import annotations

from typing import NamedTuple

from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["OPTIONS"]


class _SetOption(NamedTuple):
    key: str
    value: str


def _options(source: Source) -> list[_SetOption]:
    return [_SetOption(*item) for item in sorted(source.handle.options.to_dict().items())]


OPTIONS = declare(
    "options",
    _options,
    [
        column("key", "STRING NOT NULL", "key"),
        column("value", "STRING NOT NULL", "value"),
    ],
)

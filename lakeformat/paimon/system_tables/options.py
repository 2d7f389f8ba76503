# SPDX-License-Identifier: Apache-2.0
"""``$options``: the options that the table sets; credentials are hidden."""

from __future__ import annotations

from typing import NamedTuple

from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source
from lakeformat.tables.credential_options import shown_options

__all__ = ["OPTIONS"]


class _SetOption(NamedTuple):
    key: str
    value: str


def _options(source: Source) -> list[_SetOption]:
    shown = shown_options(source.handle.options.to_dict())
    return [_SetOption(*item) for item in shown.items()]


OPTIONS = declare(
    "options",
    _options,
    [
        column("key", "STRING NOT NULL", "key"),
        column("value", "STRING NOT NULL", "value"),
    ],
)

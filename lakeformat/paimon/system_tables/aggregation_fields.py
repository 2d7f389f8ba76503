# SPDX-License-Identifier: Apache-2.0
"""``$aggregation_fields``: the columns of the table, and the ``fields.…`` options of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import DataField

__all__ = ["AGGREGATION_FIELDS"]

_PREFIX = "fields."


@dataclass(frozen=True, slots=True)
class _AggregatedColumn:
    field: DataField
    options: dict[str, str]
    """The options of the form ``fields.<column>.<setting>``."""

    @property
    def type_text(self) -> str:
        return _type_text(type_to_json(self.field.type))

    @property
    def functions(self) -> str:
        return f"[{', '.join(self.options.values())}]"

    @property
    def keys(self) -> str:
        return f"[{', '.join(self.options)}]"


def _columns(source: Source) -> list[_AggregatedColumn]:
    schema = source.handle.schema
    return [
        _AggregatedColumn(
            field,
            {
                key: value
                for key, value in schema.options.items()
                if key.startswith(f"{_PREFIX}{field.name}.")
            },
        )
        for field in schema.fields
    ]


def _type_text(column_type: Any) -> str:
    if isinstance(column_type, str):
        return column_type
    kind, _, rest = column_type["type"].partition(" ")
    parts = [
        _type_text(column_type[part]) for part in ("key", "value", "element") if part in column_type
    ]
    parts += [f"`{f['name']}` {_type_text(f['type'])}" for f in column_type.get("fields", ())]
    return f"{kind}<{', '.join(parts)}>{' ' if rest else ''}{rest}"


AGGREGATION_FIELDS = declare(
    "aggregation_fields",
    _columns,
    [
        column("field_name", "STRING NOT NULL", "field.name"),
        column("field_type", "STRING NOT NULL", "type_text"),
        column("function", "STRING", "functions"),
        column("function_options", "STRING", "keys"),
        column("comment", "STRING", "field.description"),
    ],
)

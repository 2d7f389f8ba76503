# SPDX-License-Identifier: Apache-2.0
"""``$schemas``: every version of the schema; credentials in the options are hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source
from lakeformat.tables.credential_options import shown_option
from lakeformat.types.type_text import field_to_json

__all__ = ["SCHEMAS"]


def _schemas(source: Source) -> list[TableSchema]:
    storage, layout = source.handle.storage, source.handle.layout
    return [read_schema(storage, layout, number) for number in schema_ids(storage, layout)]


def _shown(options: Mapping[str, str]) -> dict[str, str]:
    return {key: shown_option(key, value) for key, value in options.items()}


def _flat_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


SCHEMAS = declare(
    "schemas",
    _schemas,
    [
        column("schema_id", "BIGINT NOT NULL", "id"),
        column(
            "fields",
            "STRING NOT NULL",
            lambda rows: [_flat_json([*map(field_to_json, schema.fields)]) for schema in rows],
        ),
        column(
            "partition_keys",
            "STRING NOT NULL",
            lambda rows: [_flat_json(schema.partition_keys) for schema in rows],
        ),
        column(
            "primary_keys",
            "STRING NOT NULL",
            lambda rows: [_flat_json(schema.primary_keys) for schema in rows],
        ),
        column(
            "options",
            "STRING NOT NULL",
            lambda rows: [_flat_json(_shown(schema.table_options.to_dict())) for schema in rows],
        ),
        column("comment", "STRING", "comment"),
        column("update_time", "TIMESTAMP(3) NOT NULL", "time_millis"),
    ],
)

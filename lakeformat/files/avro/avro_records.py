# SPDX-License-Identifier: Apache-2.0
"""Checks the schema of an Avro file: each item of its lists must take at least one byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import fastavro

from lakeformat.files.avro.avro_container import short_reason

__all__ = ["record_schema"]


@lru_cache(maxsize=16)
def record_schema(text: bytes) -> dict[str, Any]:
    """Return the parsed schema of an Avro file, which must be a record.

    Raise ``ValueError`` for any other schema, and for lists whose items take no bytes: a few bytes
    could claim billions of such items. The files of one table have few schemas, so the last results
    are cached: do not change a result.
    """
    try:
        schema: Any = fastavro.parse_schema(json.loads(text))
        free = next(_free_items(schema, schema.get("__named_schemas", {})), None)
    except Exception as reason:  # fastavro raises any error for a broken schema
        raise ValueError(f"its schema is invalid: {short_reason(reason)}") from reason
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its schema is not a record")
    if free is not None:
        raise ValueError(
            f"its schema has lists with items of the type {str(free)[:40]}, which take no bytes, "
            "so the number of items cannot be checked"
        )
    return schema


def _free_items(schema: Any, named: dict[str, Any]) -> Iterator[Any]:
    """Yield the item type of each array in ``schema`` whose items take no bytes, such as nulls."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _free_items(branch, named)
    elif isinstance(schema, dict):
        if schema.get("type") == "array":
            if _is_free(schema["items"], named, frozenset()):
                yield schema["items"]
            yield from _free_items(schema["items"], named)
        yield from _free_items(schema.get("values"), named)
        for field in schema.get("fields", ()):
            yield from _free_items(field["type"], named)


def _is_free(schema: Any, named: dict[str, Any], above: frozenset[str]) -> bool:
    """Return True if no value of a schema takes any bytes.

    ``named`` has the definition of each named type, ``above`` the names of the enclosing records. A
    reference to an enclosing record counts as empty: the record's other fields decide.
    """
    if isinstance(schema, str):
        if schema in named and schema not in above:
            return _is_free(named[schema], named, above | {schema})
        return schema == "null" or schema in above
    if not isinstance(schema, dict):
        return False
    if schema["type"] == "record":
        above = above | {schema["name"]}
        return all(_is_free(field["type"], named, above) for field in schema["fields"])
    if schema["type"] == "fixed":
        return bool(schema["size"] == 0)
    return bool(schema["type"] == "null")

"""Golden cases of merging: what Java made of batches of rows, as data."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import field_from_json, type_to_json
from lakeformat.types.types import DataField
from tests.golden.folder import golden_folder

__all__ = ["Batch", "Change", "GoldenCase", "golden_cases"]

CASES: Path = golden_folder() / "merge" / "cases.json"
Change = tuple[str, dict[str, Any]]
"""The kind of a row and its values by column."""


@dataclass(frozen=True)
class Batch:
    """One step of a case: rows in one commit, or something done to the table."""

    content: Mapping[str, Any]
    """As the file has it: ``rows``, ``overwrite``, ``options``, ``compact``, ``tag`` and so on."""
    rows: Sequence[Change]


@dataclass(frozen=True)
class GoldenCase:
    """One table, what is done to it, and what Java then reads."""

    content: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<{self.id}: {self.content['title']}>"

    @property
    def id(self) -> str:
        """Such as ``pu-008``."""
        return str(self.content["id"])

    @property
    def options(self) -> dict[str, str]:
        """The options of the table."""
        return dict(self.content["options"])

    @property
    def primary_key(self) -> list[str]:
        """Its columns, none for an append table."""
        return list(self.content["schema"]["primaryKeys"])

    @property
    def partition_keys(self) -> list[str]:
        """Its columns."""
        return list(self.content["schema"]["partitionKeys"])

    @cached_property
    def fields(self) -> tuple[DataField, ...]:
        """The columns."""
        return tuple(field_from_json(field) for field in self.content["schema"]["fields"])

    @property
    def types(self) -> dict[str, str]:
        """The type of each column as text."""
        return {field.name: str(type_to_json(field.type)) for field in self.fields}

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return to_arrow_schema(self.fields)

    @property
    def batches(self) -> list[Batch]:
        """The steps, in order."""
        return [
            Batch(content, self.changes(content.get("rows", ())))
            for content in self.content["batches"]
        ]

    @property
    def expected(self) -> Mapping[str, Any]:
        """``rows``, ``changelog`` or ``stream_delta``, ``error``, ``batch_errors``."""
        found = self.content["expected"]
        assert isinstance(found, Mapping)
        return found

    @property
    def reads(self) -> list[Mapping[str, Any]]:
        """Other reads with what they give."""
        return list(self.content.get("reads", ()))

    @property
    def has_loose_order(self) -> bool:
        """True if the order of elements and entries has no meaning."""
        return not self.content["compare"]["array_and_map_order_matters"]

    @property
    def is_in_order(self) -> bool:
        """True if the order of rows matters."""
        return bool(self.content["compare"]["row_order_matters"])

    @property
    def hint(self) -> str | None:
        """``bitmap`` or ``sketch`` where bytes may differ."""
        return self.content["compare"].get("hint")

    def changes(self, rows: Sequence[Sequence[Any]]) -> list[Change]:
        """Rows of the file that begin with their kind."""
        return [(kind, self.row(values)) for kind, *values in rows]

    def row(self, values: Sequence[Any]) -> dict[str, Any]:
        """One row of the file as ``pa.Table.from_pylist`` takes it."""
        types = self.schema.types
        return {
            field.name: _decode(value, kind)
            for field, value, kind in zip(self.fields, values, types, strict=True)
        }

    def table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Rows as an Arrow table with the columns of the case."""
        return pa.Table.from_pylist(list(rows), self.schema)


def golden_cases() -> list[GoldenCase]:
    """Every case there is; none when the folder is not on this machine."""
    if not CASES.is_file():
        return []
    content = json.loads(CASES.read_text(encoding="utf-8"))
    found = [GoldenCase(case) for case in content["cases"]]
    assert len(found) == content["counts"]["cases"], f"{CASES} is cut off"
    return found


def _decode(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if pa.types.is_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_struct(kind):
        return {part.name: _decode(v, part.type) for part, v in zip(kind, value, strict=True)}
    if pa.types.is_map(kind):
        return [(_decode(k, kind.key_type), _decode(v, kind.item_type)) for k, v in value]
    if pa.types.is_list(kind):
        return [_decode(element, kind.value_type) for element in value]
    return value

"""Golden tables: real Paimon tables of other writers, with the rows every reader must return.

``format`` was written by pypaimon, ``format-java`` by the Java code. Each table has a ``table``
directory and an ``expected.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.golden.folder import golden_folder
from tests.golden.values import Row, Timestamp, map_of

__all__ = ["HOW_TO_UNSKIP", "GoldenTable", "golden_tables"]

WRITERS = ("format", "format-java")
HOW_TO_UNSKIP = "the folder that GOLDEN names has nothing for this test: unset GOLDEN"

_INT8_VALUE = 3 << 2
"""The header of a VARIANT's value that is a number of one byte."""


@dataclass(frozen=True)
class GoldenTable:
    """One table directory and what reading it must give; its files are shared, never write."""

    folder: Path

    @property
    def name(self) -> str:
        """Such as ``format-java/thin_mode``."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def location(self) -> str:
        """The address of the table, for ``open_table``."""
        return str(self.folder / "table")

    @cached_property
    def expected(self) -> dict[str, Any]:
        """The content of ``expected.json``."""
        content = json.loads((self.folder / "expected.json").read_text(encoding="utf-8"))
        assert isinstance(content, dict)
        return content

    @property
    def column_names(self) -> list[str]:
        """The columns of the newest schema, in order."""
        return [column["name"] for column in self.expected["columns"]]

    @property
    def row_count(self) -> int:
        """The number of rows of the latest snapshot."""
        return int(self.expected["row_count"])

    def rows(self, member: str = "rows") -> list[Row]:
        """The rows of the latest snapshot, or those another member of the file lists."""
        columns = self.expected["columns"]
        return [
            {
                column["name"]: parse_value(value, is_instant=_holds_instants(column["type"]))
                for column, value in zip(columns, row, strict=True)
            }
            for row in self.expected[member]
        ]


def golden_tables() -> list[GoldenTable]:
    """Every golden table there is."""
    folder = golden_folder()
    found = sorted(path for name in WRITERS for path in (folder / name).glob("*/expected.json"))
    return [GoldenTable(path.parent) for path in found]


def parse_value(value: Any, *, is_instant: bool = False) -> Any:
    """One value of ``expected.json`` as ``rows_of`` gives it.

    ``is_instant`` is for the few timestamps without a mark of their own.
    """
    if isinstance(value, list):
        return [parse_value(element) for element in value]
    if not isinstance(value, dict):
        return value
    tag, content = next(iter(value.items()))
    match tag:
        case "decimal":
            return Decimal(content)
        case "hex":
            return bytes.fromhex(content)
        case "date":
            return date.fromisoformat(content)
        case "time":
            return time.fromisoformat(content)
        case "timestamp":
            return Timestamp.parse(content, is_instant=value["tz"] is not None)
        case "nanos_of_epoch":
            return Timestamp(content, is_instant)
        case "map":
            return map_of([parse_value(part) for part in entry] for entry in content)
        case "row":
            return {name: parse_value(part) for name, part in content.items()}
        case "variant_json":
            return encode_variant(json.loads(content))
    raise AssertionError(f"expected.json has a value of an unknown kind: {value!r}")


def encode_variant(members: Mapping[str, int]) -> dict[str, bytes]:
    """The two parts of a VARIANT that is an object of small numbers, as Java writes it."""
    names = sorted(members)
    ends = [len("".join(names[:count]).encode()) for count in range(len(names) + 1)]
    metadata = bytes([1, len(names), *ends]) + "".join(names).encode()
    numbers = [members[name].to_bytes(1, "little", signed=True) for name in names]
    header = bytes([2, len(names), *range(len(names)), *range(0, 2 * len(names) + 1, 2)])
    value = header + b"".join(bytes([_INT8_VALUE]) + number for number in numbers)
    return {"value": value, "metadata": metadata}


def _holds_instants(column_type: Any) -> bool:
    text = json.dumps(column_type)
    return "LOCAL TIME ZONE" in text or "TIMESTAMP_LTZ" in text

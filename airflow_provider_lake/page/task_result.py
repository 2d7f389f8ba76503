# SPDX-License-Identifier: Apache-2.0
"""The result of a task as lines for its page. The result is an XCom, so a member may have any
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.types.byte_size import size
from lakeformat.types.duration_text import duration

__all__ = ["CheckLine", "TableLine", "check_lines", "report_facts", "table_lines"]

_KNOWN = {"table", "reason", "location", "left_out", "tables", "checks"}
"""Members of a report that other parts of the page show."""
_LONGEST_TEXT = 200
_MOST_TABLES = 200


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table in the result of a task on a whole database, with the outcome of the work."""

    name: str
    outcome: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class CheckLine:
    """The result of one check of rows."""

    name: str
    outcome: str
    finding: str
    advice: str


def report_facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the members of a task's report as pairs of label and text. The whole number 0, False
    and empty values are left out.
    """
    report = _mapping(result.get("report"))
    cut = _mapping(report.get("left_out"))
    found = []
    for key, value in report.items():
        text = "" if key in _KNOWN else _text(str(key), value, cut.get(key, 0))
        if text:
            found.append((_label(str(key)), text))
    return found


def table_lines(result: Mapping[str, Any]) -> list[TableLine]:
    """Return a line for each of the first 200 tables in the result of a task on a whole
    database.
    """
    tables = _mapping(result.get("report")).get("tables")
    lines = []
    for each in tables[:_MOST_TABLES] if isinstance(tables, list) else ():
        line = _mapping(each)
        error = line.get("error")
        reason = _mapping(line.get("report")).get("reason", "")
        if "table" in line:
            lines.append(TableLine(str(line["table"]), str(error or reason), error is not None))
    return lines


def check_lines(result: Mapping[str, Any]) -> list[CheckLine]:
    """Return a line for each check in the result of a task that checks rows."""
    checks = _mapping(result.get("report")).get("checks")
    return [
        CheckLine(*(str(each.get(name, "")) for name in ("name", "outcome", "finding", "advice")))
        for each in map(_mapping, checks if isinstance(checks, list) else ())
        if "name" in each
    ]


def _label(key: str) -> str:
    words = key.removesuffix("millis").replace("_", " ").strip()
    return (words or "time").capitalize()


def _text(key: str, value: Any, cut: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return _amount(key, value) if value else ""
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}…"
    if isinstance(value, Mapping) and value and all(type(n) is int for n in value.values()):
        return ", ".join(f"{number:,} {name}" for name, number in value.items())
    if isinstance(value, Sequence) and value:
        return f"{len(value) + (cut if type(cut) is int else 0):,}"
    return ""


def _amount(key: str, number: int) -> str:
    if number > 0 and key.endswith("bytes"):
        return size(number)
    return duration(number) if key.endswith("millis") else f"{number:,}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

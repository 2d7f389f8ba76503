"""One operation on many tables: each has an outcome of its own."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import lakeformat as lake
from lakeformat.tables.table_by_table import table_by_table


@dataclass(frozen=True)
class Said:
    table: str

    def to_dict(self) -> dict[str, str]:
        return {"said": self.table}


def act(name: str) -> Said:
    if name == "refused":
        raise lake.InvalidRequestError("no")
    if name == "defect":
        raise ZeroDivisionError("division by zero")
    return Said(name)


def test_a_table_that_fails_or_meets_a_defect_stops_no_other(caplog):
    began: list[str] = []
    with caplog.at_level(logging.CRITICAL):
        outcomes = [*table_by_table(["a", "refused", "defect", "b"], act, began=began.append)]
    assert began == ["a", "refused", "defect", "b"]
    assert [each.to_dict() for each in outcomes] == [
        {"table": "a", "report": {"said": "a"}, "error": None},
        {"table": "refused", "report": None, "error": "InvalidRequestError: no"},
        {
            "table": "defect",
            "report": None,
            "error": "LakeError: a defect of this library: ZeroDivisionError: division by zero. "
            "Report it with the traceback in the log",
        },
        {"table": "b", "report": {"said": "b"}, "error": None},
    ]


def test_nothing_is_done_before_its_turn():
    done: list[str] = []

    def note(name: str) -> Said:
        done.append(name)
        return Said(name)

    outcomes = table_by_table(["a", "b"], note)
    assert next(outcomes).table == "a"
    assert done == ["a"]

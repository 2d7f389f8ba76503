"""Random tables whose columns change between commits, and how the dictionary model follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hypothesis import strategies as st

import lakeformat as lake
from tests.merge_model import MergeModel
from tests.merge_scenarios import POOLS, Change, Scenario, scenarios

__all__ = ["Evolution", "Stage", "evolve", "evolving"]

WIDER = {
    "TINYINT": ["SMALLINT", "INT", "BIGINT"],
    "SMALLINT": ["INT", "BIGINT"],
    "INT": ["BIGINT"],
    "FLOAT": ["DOUBLE"],
    "TIMESTAMP(3)": ["TIMESTAMP(6)"],
}
"""Into which types the values of a type fit as they are."""
DEFAULT_FUNCTIONS = ("last_value", "last_non_null_value", "first_value", "first_non_null_value")


@dataclass(frozen=True)
class Evolution:
    """One change of a table's columns."""

    kind: str
    column: str
    to: str = ""
    """A type, or another name."""

    def of_schema(self) -> lake.SchemaChange:
        """As a catalog takes it."""
        match self.kind:
            case "add":
                return lake.add_column(self.column, self.to)
            case "add first":
                return lake.add_column(self.column, self.to, first=True)
            case "drop":
                return lake.drop_column(self.column)
            case "rename":
                return lake.rename_column(self.column, self.to)
            case "widen":
                return lake.update_column_type(self.column, self.to)
        return lake.update_column_position(self.column, last=True)

    def of_types(self, types: dict[str, str]) -> dict[str, str]:
        """The columns afterwards."""
        rest = {name: kind for name, kind in types.items() if name != self.column}
        match self.kind:
            case "add" | "widen":
                return {**types, self.column: self.to}
            case "add first":
                return {self.column: self.to, **types}
            case "drop":
                return rest
            case "rename":
                return {self.to if n == self.column else n: kind for n, kind in types.items()}
        return {**rest, self.column: types[self.column]}

    def of_row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a stored row in the changed columns."""
        match self.kind:
            case "add" | "add first":
                return {**row, self.column: None}
            case "drop":
                return {name: value for name, value in row.items() if name != self.column}
            case "rename":
                return {self.to if n == self.column else n: value for n, value in row.items()}
        return row


@dataclass(frozen=True)
class Stage:
    """A change of the columns, and the commit that follows."""

    evolutions: list[Evolution]
    columns: dict[str, str]
    """After them."""
    changes: list[Change]
    overwrites: bool
    """True if the rows replace those of their partitions."""


def evolve(model: MergeModel, evolution: Evolution) -> None:
    """The same to the model, and to all it has stored."""
    model.types = evolution.of_types(dict(model.types))
    model.runs = [
        {key: (number, kind, evolution.of_row(row)) for key, (number, kind, row) in run.items()}
        for run in model.runs
    ]


@st.composite
def evolving(draw: st.DrawFn, engine: str) -> tuple[Scenario, list[Stage]]:
    """A table as it is created, and its commits with what changes before each of them."""
    table = draw(scenarios(engine))
    if engine in ("aggregation", "partial-update") and draw(st.integers(0, 2)) == 0:
        functions = DEFAULT_FUNCTIONS if engine == "aggregation" else DEFAULT_FUNCTIONS[1:2]
        table.options["fields.default-aggregate-function"] = draw(st.sampled_from(functions))
    if draw(st.integers(0, 3)) == 0:
        table.columns["op"] = "STRING"
        table.options["rowkind.field"] = "op"
        commits = [[_saying_its_kind(change) for change in commit] for commit in table.commits]
        table.commits = commits
    columns, stages = dict(table.columns), list[Stage]()
    done = list[Evolution]()
    for number, commit in enumerate(table.commits):
        now = []
        for _ in range(draw(st.integers(0, 2)) if number else 0):
            now.append(_evolution(draw, table, columns, f"n{len(done) + len(now)}"))
            columns = now[-1].of_types(columns)
        done += now
        changes = [(kind, _as_of(draw, row, done)) for kind, row in commit]
        overwrites = engine != "first-row" and draw(st.integers(0, 7)) == 0
        stages.append(Stage(now, columns, changes, overwrites))
    return replace(table, commits=[]), stages


def _saying_its_kind(change: Change) -> Change:
    kind, row = change
    return kind, {**row, "op": kind}


def _as_of(draw: st.DrawFn, row: dict[str, Any], done: Sequence[Evolution]) -> dict[str, Any]:
    """A row of the first columns in those of now, with values in the columns that came since."""
    for evolution in done:
        row = evolution.of_row(row)
        if evolution.kind.startswith("add"):
            row[evolution.column] = draw(st.sampled_from([None, *POOLS[evolution.to]]))
    return row


def _evolution(
    draw: st.DrawFn, table: Scenario, columns: dict[str, str], new_name: str
) -> Evolution:
    named = _named(table)
    free = sorted(columns.keys() - named)
    narrow = sorted(n for n in columns.keys() - {*table.primary_key} if columns[n] in WIDER)
    kinds = ["add", "add first", *(["drop", "rename", "move"] if free else [])]
    kind = draw(st.sampled_from([*kinds, *(["widen"] if narrow else [])]))
    if kind == "widen":
        name = draw(st.sampled_from(narrow))
        return Evolution(kind, name, draw(st.sampled_from(WIDER[columns[name]])))
    if kind.startswith("add"):
        return Evolution(kind, new_name, draw(st.sampled_from(list(POOLS))))
    to = new_name if kind == "rename" else ""
    return Evolution(kind, draw(st.sampled_from(free)), to)


def _named(table: Scenario) -> set[str]:
    """Columns that keys and options name."""
    own = (option.removeprefix("fields.").split(".")[0] for option in table.options)
    groups = chain.from_iterable([*first, *second] for first, second in table.sequence_groups)
    return {
        *table.primary_key,
        *table.ordering,
        *chain(*(n.split(",") for n in own)),
        *groups,
        "op",
    }

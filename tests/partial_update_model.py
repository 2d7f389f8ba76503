"""The result of partial-update for the rows of one key, one after the other, by its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

RETRACTS = ("-U", "-D")


@dataclass
class Model:
    """The rules, and the state of one key; rows are (kind, number, {column: value})."""

    columns: Sequence[str]
    groups: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    functions: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_groups: Sequence[str] = ()

    def merge(self, rows: Sequence[tuple[str, int, dict]]) -> tuple[str, int, dict]:
        if len(rows) == 1:
            return rows[0]
        self.row = dict.fromkeys(self.columns)
        self.running = {name: make() for name, make in self.functions.items()}
        self.is_filled = self.has_added = False
        self.last = rows[-1][1]
        for kind, number, row in rows:
            self.is_deleted = False
            self.retract(kind, number, row) if kind in RETRACTS else self.add(number, row)
        return "-D" if self.is_deleted or not self.has_added else "+I", self.last, self.row

    def group_of(self, column: str) -> Any:
        return next((g for g in self.groups if column in (*g[0], *g[1])), None)

    def sequence(self, group: Any, row: dict) -> tuple:
        return tuple((row[name] is not None, row[name] or 0) for name in group[0])

    def fill(self, row: dict) -> None:
        if any(row[name] is None for name in self.not_null):
            raise ValueError("null")
        self.row, self.is_filled = dict(row), True

    def add(self, number: int, row: dict) -> None:
        self.last, self.is_filled, self.has_added = number, True, True
        before = dict(self.row)
        for column in self.columns:
            group, value = self.group_of(column), row[column]
            if group is None:
                if value is not None:
                    self.row[column] = value
                elif not self.groups and column in self.not_null:
                    raise ValueError("null")
            elif any(row[name] is not None for name in group[0]):
                late = self.sequence(group, row) < self.sequence(group, before)
                function = self.running.get(column)
                if function and column in group[1]:
                    step = function.add_late if late else function.add
                    self.row[column] = step(self.row[column], value)
                elif not late:
                    self.row[column] = value

    def retract(self, kind: str, number: int, row: dict) -> None:
        if not self.is_filled:
            self.fill(row)
        if self.ignore_delete:
            return
        self.last = number
        if not self.groups:
            if not self.remove_on_delete:
                raise ValueError("delete")
            if kind == "-D":
                self.fill(row)
                self.is_deleted = True
            return
        before = dict(self.row)
        for column in self.columns:
            group = self.group_of(column)
            if group is None or all(row[name] is None for name in group[0]):
                continue
            late = self.sequence(group, row) < self.sequence(group, before)
            if column in group[0]:
                if not late and kind == "-D" and set(group[0]) & set(self.remove_on_groups):
                    self.fill(row)
                    self.is_deleted = True
                    return
                if not late:
                    self.row[column] = row[column]
            elif function := self.running.get(column):
                self.row[column] = function.retract(self.row[column], row[column])
            elif not late:
                self.row[column] = None

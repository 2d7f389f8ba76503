"""The rows of a primary-key table, kept in dicts and merged row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.aggregate_model import Aggregator, ModelError, names_of, ordered

__all__ = ["MergeModel", "ModelError", "Record"]

Row = dict[str, Any]
Key = tuple[Any, ...]
Record = tuple[int, str, Row]
"""Sequence number, kind and the whole row."""
Run = dict[Key, Record]
RETRACTS = ("-U", "-D")


@dataclass
class MergeModel:
    """One table; buckets make no difference, because a key keeps its bucket."""

    types: Mapping[str, str]
    """Every column with its type as text."""
    primary_key: Sequence[str]
    options: Mapping[str, str]
    partition_keys: Sequence[str] = ()
    runs: list[Run] = field(default_factory=list)
    """The rows of each flush, oldest first."""
    next_number: int = 0

    def write(self, rows: Iterable[tuple[str, Row]]) -> list[tuple[str, Row]]:
        """One flush: merge what arrived and store it; what an input changelog has of it."""
        arrived: dict[Key, list[Record]] = {}
        for kind, row in self._not_ignored(rows):
            key = tuple(ordered(row[name]) for name in self.primary_key)
            arrived.setdefault(key, []).append((self.next_number, kind, row))
            self.next_number += 1
        inputs = [self._in_order(records) for _, records in sorted(arrived.items())]
        self.runs.append(self._merge_runs(arrived))
        return [(kind, row) for records in inputs for _, kind, row in records]

    def _not_ignored(self, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
        """Rows with the kind that they have."""
        for kind, row in rows:
            kind = row[self.options["rowkind.field"]] if "rowkind.field" in self.options else kind
            if kind == "-U" and self._is_on("ignore-update-before"):
                continue
            if kind in RETRACTS and self.ignores_delete:
                continue
            yield kind, row

    def overwrite(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Put rows in place of all, or of those in the partitions that get rows.

        One that is ignored does not arrive anywhere.
        """
        if self.partition_keys and self.options.get("dynamic-partition-overwrite") != "false":
            arriving = self._not_ignored(rows)
            touched = [[row[name] for name in self.partition_keys] for _, row in arriving]
        else:
            touched = None
        for run in self.runs:
            for key, (_, _, row) in list(run.items()):
                if touched is None or [row[name] for name in self.partition_keys] in touched:
                    del run[key]
        self.write(rows)

    def delta(self, run: int = -1) -> list[tuple[str, Row]]:
        """The rows a flush stored, with their kinds."""
        return [(kind, row) for _, kind, row in self.runs[run].values()]

    def read(self) -> list[Row]:
        """The rows a merging read of everything gives."""
        return [row for _, kind, row in self.merged() if kind not in RETRACTS]

    def merged(self) -> list[Record]:
        """One record per key from all that is stored, what is left of retracts too."""
        met: dict[Key, list[Record]] = {}
        for run in self.runs:
            for key, record in run.items():
                met.setdefault(key, []).append(record)
        return list(self._merge_runs(met).values())

    @property
    def ignores_delete(self) -> bool:
        """True if deletes and update-befores have no effect, under any name of the option."""
        return any(self._is_on(f"{name}ignore-delete") for name in ("", f"{self.engine}."))

    @property
    def engine(self) -> str:
        """Its name."""
        return self.options.get("merge-engine", "deduplicate")

    def _is_on(self, option: str) -> bool:
        return self.options.get(option) == "true"

    def _merge_runs(self, met: Mapping[Key, list[Record]]) -> Run:
        merged = {key: self._merge(self._in_order(met[key])) for key in sorted(met)}
        return {key: record for key, record in merged.items() if record is not None}

    def _in_order(self, records: list[Record]) -> list[Record]:
        records = sorted(records, key=lambda record: record[0])
        descending = self.options.get("sequence.field.sort-order") == "descending"
        for name in reversed(names_of(self.options.get("sequence.field", ""))):
            null_first = _null_first(name, descending)
            records.sort(key=null_first, reverse=descending)
        return records

    def _merge(self, records: list[Record]) -> Record | None:
        """A single record is stored unchanged, with any kind; the engine gets only several."""
        if len(records) == 1:
            return records[0]
        engines: dict[str, Callable[[list[Record]], Record | None]] = {
            "deduplicate": self._deduplicate,
            "first-row": self._first_row,
            "partial-update": self._partial_update,
            "aggregation": self._aggregation,
        }
        return engines[self.engine](deepcopy(records))

    def _deduplicate(self, records: list[Record]) -> Record | None:
        kept = [r for r in records if not (self.ignores_delete and r[1] in RETRACTS)]
        return kept[-1] if kept else None

    def _first_row(self, records: list[Record]) -> Record | None:
        if not self.ignores_delete and any(kind in RETRACTS for _, kind, _ in records):
            raise ModelError("first-row takes no delete")
        return next((record for record in records if record[1] not in RETRACTS), None)

    def _aggregation(self, records: list[Record]) -> Record:
        columns = {name: self._aggregator(name) for name in self.types}
        row: Row = dict.fromkeys(self.types)
        deleted = False
        for _, kind, new in records:
            deleted = kind == "-D" and self._is_on("aggregation.remove-record-on-delete")
            if deleted:
                row = dict(new)
                continue
            for name, column in columns.items():
                take = column.retract if kind in RETRACTS else column.agg
                row[name] = take(row[name], new[name])
        return records[-1][0], "-D" if deleted else "+I", row

    def _aggregator(self, name: str) -> Aggregator:
        own = f"fields.{name}."
        options = {k.removeprefix(own): v for k, v in self.options.items() if k.startswith(own)}
        default = self.options.get("fields.default-aggregate-function", "last_non_null_value")
        function = options.get("aggregate-function", default)
        if name in names_of(self.options.get("sequence.field", "")):
            function = "last_value"
        if name in (*self.primary_key, *self.partition_keys):
            function = "primary-key"
        return Aggregator(function, self.types[name], options)

    def _partial_update(self, records: list[Record]) -> Record:
        groups = {
            tuple(names_of(option.removeprefix("fields.").removesuffix(".sequence-group"))): value
            for option, value in self.options.items()
            if option.endswith(".sequence-group")
        }
        kept = {
            group: [name for name in names_of(value) if name not in self.partition_keys]
            for group, value in groups.items()
        }
        merge = _PartialUpdate(self, kept)
        for _, kind, new in records:
            if kind in RETRACTS:
                merge.retract(kind, new)
            else:
                merge.insert(new)
        return records[-1][0], "-D" if merge.deleted or not merge.met_insert else "+I", merge.row


class _PartialUpdate:
    """One key while its records are merged."""

    def __init__(self, table: MergeModel, groups: Mapping[Key, list[str]]) -> None:
        self.table, self.groups = table, groups
        self.row: Row = dict.fromkeys(table.types)
        self.filled = self.met_insert = self.deleted = False
        grouped = {name for group, names in groups.items() for name in (*group, *names)}
        self.loose = [name for name in table.types if name not in grouped]
        has_default = "fields.default-aggregate-function" in table.options
        self.columns = {
            name: table._aggregator(name)
            for name in table.types
            if has_default or f"fields.{name}.aggregate-function" in table.options
        }

    def insert(self, new: Row) -> None:
        self.deleted, self.filled, self.met_insert = False, True, True
        for name in self.loose:
            if new[name] is not None:
                self.row[name] = new[name]
        for group, names in self.groups.items():
            if all(new[name] is None for name in group):
                continue
            is_late = _rank(new, group) < _rank(self.row, group)
            for name in names:
                if column := self.columns.get(name):
                    take = column.agg_reversed if is_late else column.agg
                    self.row[name] = take(self.row[name], new[name])
                elif not is_late:
                    self.row[name] = new[name]
            if not is_late:
                self.row.update({name: new[name] for name in group})

    def retract(self, kind: str, new: Row) -> None:
        self.deleted = False
        if not self.filled:
            self.row, self.filled = dict(new), True
        if self.table.ignores_delete:
            return
        if not self.groups and not self.table._is_on("partial-update.remove-record-on-delete"):
            raise ModelError("partial-update takes no delete")
        removing = names_of(
            self.table.options.get("partial-update.remove-record-on-sequence-group", "")
        )
        newer = [
            group
            for group in self.groups
            if any(new[name] is not None for name in group)
            and _rank(new, group) >= _rank(self.row, group)
        ]
        if kind == "-D" and (not self.groups or any({*g} & {*removing} for g in newer)):
            self._refuse_before([name for g in newer if {*g} & {*removing} for name in g], new)
            self.row, self.deleted = dict(new), True
            return
        for group, names in self.groups.items():
            if all(new[name] is None for name in group):
                continue
            for name in names:
                if column := self.columns.get(name):
                    self.row[name] = column.retract(self.row[name], new[name])
                elif group in newer:
                    self.row[name] = None
            if group in newer:
                self.row.update({name: new[name] for name in group})

    def _refuse_before(self, removing: Sequence[str], new: Row) -> None:
        """Columns before the one that removes the row are taken back first, which may fail."""
        for name in self.table.types:
            if name in removing:
                return
            group = next((g for g, names in self.groups.items() if name in names), ())
            if name in self.columns and any(new[member] is not None for member in group):
                self.columns[name].retract(self.row[name], new[name])


def _rank(row: Row, names: Iterable[str]) -> list[Any]:
    return [(row[name] is not None, ordered(row[name])) for name in names]


def _null_first(name: str, descending: bool) -> Callable[[Record], Any]:
    def rank(record: Record) -> Any:
        value = record[2][name]
        return ((value is None) == descending, value is not None and ordered(value))

    return rank

"""Random tables with primary keys, and what is written to them, as hypothesis draws them.

Keys and values come from small pools, so that rows meet, compare equal and are late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from tests.merge_model import MergeModel

__all__ = ["ENGINES", "KINDS", "Change", "Scenario", "loosened", "scenarios"]

Change = tuple[str, dict[str, Any]]
ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")
KINDS = ("+I", "-U", "+U", "-D")
ADDS = ("+I", "+U")

NESTED = "ARRAY<ROW<id INT, v STRING, ts INT>>"
KEYTIME = "MAP<STRING NOT NULL, ROW<v STRING, ts STRING>>"
POOLS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [0, 1, -3, 120],
    "SMALLINT": [0, 1, -300],
    "INT": [0, 1, 2, -1, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 1, -7, 2**40, -(2**63)],
    "FLOAT": [0.0, -0.0, 1.5, -2.25, float("nan"), float("inf")],
    "DOUBLE": [0.0, -0.0, 0.1, -2.5, float("nan"), float("-inf")],
    "DECIMAL(6, 2)": [Decimal("0.00"), Decimal("1.50"), Decimal("-9999.99")],
    "DECIMAL(30, 3)": [Decimal("0.000"), Decimal("1.500"), Decimal("-123456789012345678901.250")],
    "STRING": ["", "a", "b", "ab", "Z", "é", "\U0001f600", " "],
    "BYTES": [b"", b"\x00", b"a", b"\xff", b"a\x00"],
    "DATE": [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    "TIMESTAMP(3)": [datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(2024, 1, 1)],
    "TIMESTAMP(6)": [datetime(1970, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)],
    "ARRAY<INT>": [[], [1], [1, 1], [2, None], [3, 1, 2]],
    "ARRAY<STRING>": [[], ["x"], ["x", "y", "x"], [None]],
    "MAP<INT NOT NULL, STRING>": [[], [(1, "a")], [(1, "b"), (2, None)], [(3, "c"), (1, "z")]],
    NESTED: [
        [],
        [{"id": 1, "v": "a", "ts": 5}],
        [{"id": 1, "v": "b", "ts": None}, {"id": 2, "v": None, "ts": 1}],
        [{"id": 3, "v": "c", "ts": 5}, {"id": 2, "v": "d", "ts": 0}],
    ],
    KEYTIME: [
        [("a", {"v": "1", "ts": "2024-01-02"})],
        [("a", {"v": "2", "ts": "2024-01-01"}), ("b", None)],
        [("b", {"v": "3", "ts": None}), ("c", {"v": "4", "ts": "2023"})],
    ],
}
KEY_TYPES = [name for name in POOLS if not name.startswith(("ARRAY", "MAP"))]
SMALL = {
    "TINYINT": [0, 1, -2, 5],
    "SMALLINT": [0, 1, -2, 5],
    "INT": [0, 1, -2, 5],
    "BIGINT": [0, 1, -2, 5],
    "DECIMAL(6, 2)": [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")],
}
"""Values that rarely overflow when added: an error ends an example early, and Arrow cannot hold a
sum that Java lets grow beyond its precision."""
ORDERED = {
    "FLOAT": [1.5, -2.25, float("inf")],
    "DOUBLE": [0.1, -2.5, float("-inf")],
}
"""Values that Java compares alike everywhere: without NaN, and without zeros of two signs."""

NUMERIC = (*SMALL, "FLOAT", "DOUBLE", "DECIMAL(30, 3)")
COMPARABLE = tuple(KEY_TYPES)
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "sum": NUMERIC,
    "product": NUMERIC,
    "max": COMPARABLE,
    "min": COMPARABLE,
    "last_value": tuple(POOLS),
    "last_non_null_value": tuple(POOLS),
    "first_value": tuple(POOLS),
    "first_non_null_value": tuple(POOLS),
    "listagg": ("STRING",),
    "bool_and": ("BOOLEAN",),
    "bool_or": ("BOOLEAN",),
    "collect": ("ARRAY<INT>", "ARRAY<STRING>"),
    "merge_map": ("MAP<INT NOT NULL, STRING>",),
    "merge_map_with_keytime": (KEYTIME,),
    "nested_update": (NESTED,),
    "nested_partial_update": (NESTED,),
}
RETRACTING = ("sum", "last_value", "last_non_null_value", "collect", "merge_map", "nested_update")
SEQUENCE_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL(6, 2)", "DATE", "TIMESTAMP(3)")


@dataclass
class Scenario:
    """One table, and the rows of each commit."""

    columns: dict[str, str]
    primary_key: list[str]
    partition_keys: list[str]
    options: dict[str, str]
    commits: list[list[Change]] = field(default_factory=list)

    def model(self) -> MergeModel:
        """The table as dictionaries, empty."""
        return MergeModel(self.columns, self.primary_key, self.options, self.partition_keys)

    def create(self, catalog: lake.Catalog, name: str) -> lake.Table:
        """The table in a catalog of ours, empty."""
        return catalog.create_table(
            name,
            self.typed_columns,
            primary_key=self.primary_key,
            partition_by=self.partition_keys,
            options=self.options,
        )

    @property
    def typed_columns(self) -> list[tuple[str, str]]:
        """The columns as ``create_table`` takes them."""
        return [
            (name, f"{kind} NOT NULL" if name in self.primary_key else kind)
            for name, kind in self.columns.items()
        ]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns in Arrow."""
        fields = enumerate(self.typed_columns)
        return to_arrow_schema(
            tuple(DataField(n, name, parse_type(kind)) for n, (name, kind) in fields)
        )

    @property
    def unordered(self) -> set[str]:
        """Columns of arrays without a defined order of elements."""
        loose = ("nested_update", "nested_partial_update", "collect")
        return {name for name in self.columns if self._function(name) in loose}

    @property
    def sequence_groups(self) -> list[tuple[list[str], list[str]]]:
        """The sequence columns, and the columns of their group."""
        return [
            (option[len("fields.") : -len(".sequence-group")].split(","), protected.split(","))
            for option, protected in self.options.items()
            if option.endswith(".sequence-group")
        ]

    @property
    def ordering(self) -> set[str]:
        """Sequence columns, of the whole row or of a group."""
        named = self.options.get("sequence.field", "").split(",")
        return {*named, *chain.from_iterable(sequence for sequence, _ in self.sequence_groups)}

    def _function(self, name: str) -> str:
        return self.options.get(f"fields.{name}.aggregate-function", "")


def loosened(rows: list[dict[str, Any]], scenario: Scenario) -> list[dict[str, Any]]:
    """Rows whose arrays without an order are sorted."""

    def plain(name: str, value: Any) -> Any:
        is_loose = name in scenario.unordered and value is not None
        return sorted(value, key=repr) if is_loose else value

    return [{name: plain(name, value) for name, value in row.items()} for row in rows]


@st.composite
def scenarios(draw: st.DrawFn, engine: str, *, with_partitions: bool = True) -> Scenario:
    """A table of one engine with a few commits."""
    key_count = draw(st.integers(1, 2))
    columns = {f"k{i}": draw(st.sampled_from(KEY_TYPES)) for i in range(key_count)}
    keys = list(columns)
    table = Scenario(columns, keys, [], {"bucket": str(draw(st.integers(1, 3)))})
    table.options["merge-engine"] = engine
    takes_retracts = _ENGINES[engine](draw, table)
    if engine != "first-row" and "sequence.field" not in table.options and draw(st.booleans()):
        _add_sequence_field(draw, table)
    if with_partitions and draw(st.integers(0, 3)) == 0:
        columns["dt"] = "STRING"
        table.primary_key.append("dt")
        table.partition_keys.append("dt")
    _add_common_options(draw, table)
    kinds = KINDS if takes_retracts or draw(st.integers(0, 9)) == 0 else ADDS
    if engine == "first-row" and "ignore-delete" not in table.options:
        kinds = ADDS  # others are refused when written: no compaction could take them
    table.commits = draw(st.lists(_rows(table, kinds), min_size=1, max_size=4))
    return table


def _rows(table: Scenario, kinds: tuple[str, ...]) -> st.SearchStrategy[list[Change]]:
    values: dict[str, st.SearchStrategy[Any]] = {}
    for name, kind in table.columns.items():
        function = table._function(name)
        pool = SMALL.get(kind, POOLS[kind]) if function in ("sum", "product") else POOLS[kind]
        if name in table.partition_keys:
            pool = ["2024-01-01", "2024-01-02"]
        elif name in table.primary_key:
            pool = ORDERED.get(kind, pool)[:3]
        elif name in table.ordering:
            pool = [None, *ORDERED.get(kind, pool)]
        else:
            pool = [None, *pool]
        values[name] = st.sampled_from(pool)
    row = st.fixed_dictionaries(values)
    return st.lists(st.tuples(st.sampled_from(kinds), row), min_size=1, max_size=8)


def _add_column(draw: st.DrawFn, table: Scenario, types: tuple[str, ...]) -> str:
    name = f"c{len(table.columns)}"
    table.columns[name] = draw(st.sampled_from(types))
    return name


def _add_sequence_field(draw: st.DrawFn, table: Scenario) -> None:
    names = [_add_column(draw, table, SEQUENCE_TYPES) for _ in range(draw(st.integers(1, 2)))]
    table.options["sequence.field"] = ",".join(names)
    if draw(st.booleans()):
        table.options["sequence.field.sort-order"] = "descending"


def _add_common_options(draw: st.DrawFn, table: Scenario) -> None:
    chance = draw(st.integers(0, 15))
    removes = any("remove-record" in option for option in table.options)
    if chance & 3 == 3 and not removes:
        table.options["ignore-delete"] = "true"
    if chance & 12 == 12:
        table.options["ignore-update-before"] = "true"
    if draw(st.booleans()) and table.options["merge-engine"] != "first-row":
        table.options["changelog-producer"] = "input"


def _add_function(draw: st.DrawFn, table: Scenario, functions: tuple[str, ...]) -> str:
    function = draw(st.sampled_from(functions))
    name = _add_column(draw, table, FUNCTIONS[function])
    own = f"fields.{name}."
    table.options[f"{own}aggregate-function"] = function
    more: dict[str, str] = {}
    if function in ("listagg", "collect") and draw(st.booleans()):
        more["distinct"] = "true"
    if function == "listagg" and draw(st.booleans()):
        more["list-agg-delimiter"] = ";"
    if function == "nested_partial_update" or (function == "nested_update" and draw(st.booleans())):
        more["nested-key"] = "id"
        if function == "nested_update" and draw(st.booleans()):
            more["nested-sequence-field"] = "ts"
    if function == "nested_update" and draw(st.booleans()):
        more["count-limit"] = "3"
    table.options.update({own + key: value for key, value in more.items()})
    return name


def _deduplicate(draw: st.DrawFn, table: Scenario) -> bool:
    for _ in range(draw(st.integers(0, 3))):
        _add_column(draw, table, tuple(POOLS))
    return True


def _first_row(draw: st.DrawFn, table: Scenario) -> bool:
    _deduplicate(draw, table)
    return False


def _aggregation(draw: st.DrawFn, table: Scenario) -> bool:
    takes_retracts = draw(st.booleans())
    removes = takes_retracts and draw(st.booleans())
    functions = RETRACTING if takes_retracts and not removes else tuple(FUNCTIONS)
    for _ in range(draw(st.integers(1, 4))):
        name = _add_function(draw, table, functions if not removes else tuple(FUNCTIONS))
        if not removes and draw(st.integers(0, 7)) == 0:
            table.options[f"fields.{name}.ignore-retract"] = "true"
    if removes:
        table.options["aggregation.remove-record-on-delete"] = "true"
    if draw(st.booleans()):
        _add_column(draw, table, tuple(POOLS))
    return takes_retracts


def _partial_update(draw: st.DrawFn, table: Scenario) -> bool:
    for _ in range(draw(st.integers(0, 2))):
        _add_column(draw, table, tuple(POOLS))
    takes_retracts = False
    if draw(st.booleans()):
        groups = [_add_group(draw, table) for _ in range(draw(st.integers(1, 2)))]
        takes_retracts = draw(st.booleans())
        if takes_retracts and draw(st.booleans()):
            table.options["partial-update.remove-record-on-sequence-group"] = groups[0]
    elif draw(st.booleans()):
        table.options["partial-update.remove-record-on-delete"] = "true"
        takes_retracts = True
    return takes_retracts


def _add_group(draw: st.DrawFn, table: Scenario) -> str:
    before = draw(st.integers(0, 1))
    protected = [_add_protected(draw, table) for _ in range(before)]
    sequence = [_add_column(draw, table, SEQUENCE_TYPES) for _ in range(draw(st.integers(1, 2)))]
    protected += [_add_protected(draw, table) for _ in range(draw(st.integers(1 - before, 2)))]
    table.options[f"fields.{','.join(sequence)}.sequence-group"] = ",".join(protected)
    return sequence[0]


def _add_protected(draw: st.DrawFn, table: Scenario) -> str:
    if draw(st.booleans()):
        return _add_column(draw, table, tuple(POOLS))
    return _add_function(draw, table, RETRACTING if draw(st.booleans()) else tuple(FUNCTIONS))


_ENGINES = {
    "deduplicate": _deduplicate,
    "first-row": _first_row,
    "partial-update": _partial_update,
    "aggregation": _aggregation,
}

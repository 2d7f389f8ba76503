"""Merge engine partial-update: the rules row by row, and shortcuts that do not read every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.merge.partial_update import PartialUpdate
from lakeformat.paimon.merge.partial_update_rules import PartialUpdateRules
from lakeformat.paimon.schema_changes.sequence_groups import SequenceGroup
from tests import sampling
from tests.partial_update_model import Model

KINDS = ("+I", "-U", "+U", "-D")
COLUMNS = ("k", "a", "g", "b", "x", "h", "c", "i")
TWO_GROUPS = (SequenceGroup("1", ("g",), ("a", "b")), SequenceGroup("2", ("h", "i"), ("c",)))


class Sum:
    """A function that does not care about order."""

    def add(self, state, value):
        return value if state is None else state if value is None else state + value

    add_late = add

    def retract(self, state, value):
        return state if value is None else (state or 0) - value


class FirstValue:
    """A function that remembers more than its value."""

    is_locked = False

    def add(self, state, value):
        state = state if self.is_locked else value
        self.is_locked = True
        return state

    def add_late(self, state, value):
        locked, self.is_locked = self.is_locked, True
        return value if locked else state

    def retract(self, state, value):
        raise ValueError("cannot take back")


@dataclass
class Slow:
    """A function of the model as the engine wants it."""

    make: type
    name: str = "slow"
    keeps_single: bool = True

    def accumulator(self, values, keys):
        return SlowAccumulator(
            values.to_pylist(), [None] * keys, [self.make() for _ in range(keys)]
        )


@dataclass
class SlowAccumulator:
    values: list
    states: list
    running: list

    def _step(self, step, keys, rows):
        for key, row in zip(keys, rows, strict=True):
            function = getattr(self.running[key], step)
            self.states[key] = function(self.states[key], self.values[row])

    def add(self, keys, rows):
        self._step("add", keys, rows)

    def add_late(self, keys, rows):
        self._step("add_late", keys, rows)

    def retract(self, keys, rows):
        self._step("retract", keys, rows)

    def reset(self, keys, rows):
        for key, row in zip(keys, rows, strict=True):
            self.states[key] = self.values[row]

    def result(self):
        return pa.array(self.states, pa.int64())


def table_of(rows) -> pa.Table:
    """Rows are (kind, {column: value}), in the order they came."""
    return pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(len(rows)), pa.int64()),
            "_VALUE_KIND": pa.array([KINDS.index(kind) for kind, _ in rows], pa.int8()),
            **{
                name: pa.chunked_array(
                    [
                        pa.array([row[name] for _, row in rows[:2]], pa.int64()),
                        pa.array([row[name] for _, row in rows[2:]], pa.int64()),
                    ]
                )
                for name in COLUMNS
            },
        }
    )


def merged(rules: PartialUpdateRules, rows, columns=COLUMNS):
    """(kind, sequence number, values) of each key, or None if the rows are refused."""
    engine = PartialUpdate(rules)
    table = table_of(rows).select(["_SEQUENCE_NUMBER", "_VALUE_KIND", *engine.needs(columns)])
    try:
        result = engine.merge(table, MergeOrder(("k",)).group(table))
    except (lake.InvalidRequestError, ValueError):
        return None
    assert result.schema == table.schema
    kinds = [KINDS[kind] for kind in result["_VALUE_KIND"].to_pylist()]
    values = result.select(list(columns)).to_pylist()
    return list(zip(kinds, result["_SEQUENCE_NUMBER"].to_pylist(), values, strict=True))


def modelled(rules: PartialUpdateRules, rows):
    model = Model(
        COLUMNS,
        [(group.sequence, group.protected) for group in rules.groups],
        {name: function.make for name, function in rules.functions.items()},
        sorted(rules.not_null),
        rules.ignore_delete,
        rules.remove_on_delete,
        sorted(rules.remove_on_groups),
    )
    by_key: dict[int, list] = {}
    for number, (kind, row) in enumerate(rows):
        by_key.setdefault(row["k"], []).append((kind, number, row))
    try:
        return [model.merge(by_key[key]) for key in sorted(by_key)]
    except ValueError:
        return None


PLAIN = PartialUpdateRules(COLUMNS)
GROUPED = PartialUpdateRules(COLUMNS, groups=TWO_GROUPS)
RULES = {
    "plain": PLAIN,
    "plain, NOT NULL": replace(PLAIN, not_null=frozenset({"k", "a"})),
    "plain, deletes ignored": replace(PLAIN, ignore_delete=True),
    "plain, deletes remove": replace(PLAIN, remove_on_delete=True),
    "groups": GROUPED,
    "groups, NOT NULL": replace(GROUPED, not_null=frozenset({"k", "x"})),
    "groups, deletes ignored": replace(GROUPED, ignore_delete=True),
    "groups, a delete in one removes": replace(GROUPED, remove_on_groups=frozenset({"i"})),
    "groups, a delete in both removes": replace(GROUPED, remove_on_groups=frozenset("gi")),
    "functions": replace(GROUPED, functions={"a": Slow(Sum), "c": Slow(Sum)}),
    "functions of order": replace(
        GROUPED,
        functions={"b": Slow(FirstValue), "c": Slow(FirstValue)},
        remove_on_groups=frozenset("g"),
    ),
}


def rows_of(kinds):
    value = st.none() | st.integers(0, 3)
    row = st.fixed_dictionaries({"k": st.integers(0, 2), **{name: value for name in COLUMNS[1:]}})
    return st.lists(st.tuples(st.sampled_from(kinds), row), max_size=12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@settings(max_examples=sampling.count(8, whole=25))
@given(rows=rows_of(("+I", "+U")))
def test_added_rows_merge_as_the_rules_read(rules, rows):
    assert merged(rules, rows) == modelled(rules, rows)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@settings(max_examples=sampling.count(8, whole=40))
@given(rows=rows_of(("+I", "+I", "+U", "-U", "-D")))
def test_rows_of_any_kind_merge_as_the_rules_read(rules, rows):
    assert merged(rules, rows) == modelled(rules, rows)


@given(rows=rows_of(KINDS), others=st.sets(st.sampled_from(COLUMNS[1:]), max_size=3))
def test_what_is_read_does_not_change_what_is_read_of_it(rows, others):
    columns = ("k", *sorted(others))
    rules = RULES["groups, a delete in one removes"]
    whole = merged(rules, rows)
    assert merged(rules, rows, columns) == [
        (kind, last, {name: row[name] for name in columns}) for kind, last, row in whole
    ]


def test_a_group_that_removes_rows_is_read_whatever_is_asked_for():
    engine = PartialUpdate(RULES["groups, a delete in one removes"])
    assert engine.needs(["x"]) == ("x", "h", "i")
    assert engine.needs(["b", "k"]) == ("b", "k", "g", "h", "i")
    assert PartialUpdate(GROUPED).needs(["x"]) == ("x",)


def test_what_stands_after_the_sequence_that_removes_a_row_is_not_taken_back():
    rules = replace(GROUPED, remove_on_groups=frozenset("g"), functions={"b": Slow(FirstValue)})
    rows = [("+I", dict.fromkeys(COLUMNS, 1)), ("-D", dict.fromkeys(COLUMNS, 1))]
    assert merged(rules, rows) == [("-D", 1, dict.fromkeys(COLUMNS, 1))]
    before = replace(rules, functions={"a": Slow(FirstValue)})
    assert merged(before, rows) is None


class Latest:
    """The merge of a column without a function."""

    def add(self, state, value):
        return value

    def add_late(self, state, value):
        return state


def random_rows(seed: int, kinds) -> list:
    """Many rows of few keys: some keys have hundreds, some one."""
    chance = np.random.default_rng(seed)
    keys = np.minimum(chance.geometric(0.02, 3000), 200)
    values = chance.integers(-1, 50, (3000, len(COLUMNS))).tolist()
    return [
        (kind, {**{n: v if v > 25 else None for n, v in zip(COLUMNS, row, strict=True)}, "k": key})
        for kind, key, row in zip(chance.choice(kinds, 3000), keys.tolist(), values, strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("groups", [TWO_GROUPS[1:], TWO_GROUPS], ids=len)
def test_the_ways_around_every_row_lead_to_the_same_rows(groups, seed):
    """A function makes the engine look at every row of every key."""
    rows = random_rows(seed, ("+I", "+U"))
    quick = PartialUpdateRules(COLUMNS, groups=groups)
    assert merged(quick, rows) == merged(replace(quick, functions={"c": Slow(Latest)}), rows)


def test_a_key_may_have_any_number_of_rows_without_a_value():
    rows = [("+I", dict.fromkeys(COLUMNS, 1))]
    rows += [("+I", {**dict.fromkeys(COLUMNS), "k": 1, "b": n}) for n in range(20)]
    assert merged(PLAIN, rows) == [("+I", 20, {**dict.fromkeys(COLUMNS, 1), "b": 19})]
    assert merged(PLAIN, rows[1:]) == [("+I", 19, {**dict.fromkeys(COLUMNS), "k": 1, "b": 19})]


def test_the_smallest_number_is_a_sequence_like_any_other():
    smallest = -(2**63)
    first = ("+I", {**dict.fromkeys(COLUMNS), "k": 1, "g": smallest, "a": 1})
    unsaid = ("+I", {**dict.fromkeys(COLUMNS), "k": 1, "a": 2})
    ((_, _, row),) = merged(GROUPED, [first, unsaid])
    assert (row["g"], row["a"]) == (smallest, 1)


def test_who_refuses_a_delete_says_which_key_and_what_to_do():
    rows = table_of([("+I", dict.fromkeys(COLUMNS, 7)), ("-D", dict.fromkeys(COLUMNS, 7))])
    engine = PartialUpdate(replace(PLAIN, keys=("k",)))
    wanted = r"key k = 7 .* set the table option 'ignore-delete' to 'true'"
    with pytest.raises(lake.InvalidRequestError, match=wanted):
        engine.merge(rows, MergeOrder(("k",)).group(rows))


def test_who_refuses_a_null_says_which_key_and_column():
    rows = table_of(
        [("+I", dict.fromkeys(COLUMNS, 7)), ("+I", {**dict.fromkeys(COLUMNS, 7), "a": None})]
    )
    engine = PartialUpdate(replace(PLAIN, keys=("k",), not_null=frozenset("a")))
    with pytest.raises(lake.InvalidRequestError, match="'a' is NOT NULL, but a row of key k = 7"):
        engine.merge(rows, MergeOrder(("k",)).group(rows))


SEQUENCE_TYPES = [
    (pa.int8(), [3, -3]),
    (pa.float32(), [float("nan"), 5.5]),
    (pa.float64(), [0.0, -0.0]),
    (pa.decimal128(38, 3), [Decimal("1e30"), Decimal("-1e30")]),
    (pa.date32(), [date(2024, 1, 2), date(1960, 1, 1)]),
    (pa.time32("ms"), [time(23), time(1)]),
    (pa.timestamp("us"), [datetime(2024, 1, 2), datetime(1960, 1, 1)]),
]


@pytest.mark.parametrize(("kind", "newest_and_older"), SEQUENCE_TYPES, ids=str)
def test_any_type_with_an_order_is_a_sequence(kind, newest_and_older):
    newest, older = newest_and_older
    rows = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array([0, 1, 2], pa.int64()),
            "_VALUE_KIND": pa.array([0, 0, 0], pa.int8()),
            "k": [1, 1, 1],
            "a": ["newest", "older", "unsaid"],
            "g": pa.array([newest, older, None], kind),
        }
    )
    group = SequenceGroup("1", ("g",), ("a",))
    engine = PartialUpdate(PartialUpdateRules(("k", "a", "g"), groups=(group,)))
    merged_rows = engine.merge(rows, MergeOrder(("k",)).group(rows))
    assert merged_rows["a"].to_pylist() == ["newest"]

"""Every aggregate function against a model that works value by value, as Java does.

States are driven in rounds, as engines do: in each round some keys get one operation each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakeformat import LakeError
from lakeformat.paimon.merge.functions.function import AggregateFunction, ReducesChanges
from lakeformat.paimon.merge.functions.registry import aggregate_function
from lakeformat.paimon.merge.functions.segments import ranks_of
from lakeformat.paimon.options import TableOptions
from lakeformat.rows.groups import KeyGroups
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_text import parse_type, type_to_json
from lakeformat.types.types import DataField
from tests.aggregate_model import Aggregator, ModelError
from tests.sampling import SEED, count

Draw = Callable[[random.Random], Any]
RETRACTING = {"sum", "product", "last_value", "last_non_null_value", "collect", "merge_map"}
RETRACTING |= {"nested_update"}


@dataclass(frozen=True)
class Subject:
    """A function on a type, and what its column holds."""

    function: str
    type_text: str
    draw: Draw
    options: Mapping[str, str]

    def __str__(self) -> str:
        return "-".join((self.function, self.type_text.split("<")[0], *self.options))

    @property
    def field(self) -> DataField:
        return DataField(0, "v", parse_type(self.type_text))

    @property
    def retracts(self) -> bool:
        """True if the model and the function agree on retracted values, most times."""
        if "DECIMAL" in self.type_text and self.function == "product":
            return False  # few quotients end
        return self.function in RETRACTING

    @property
    def reduces_changes(self) -> bool:
        """True if retracts need no rounds."""
        return isinstance(self.build(), ReducesChanges)

    def build(self) -> AggregateFunction:
        options = {f"fields.v.{key}": value for key, value in self.options.items()}
        return aggregate_function(self.function, self.field, TableOptions(options))

    def model(self) -> Aggregator:
        return Aggregator(self.function, str(type_to_json(self.field.type)), self.options)

    def column(self, values: list[Any]) -> pa.Array:
        return pa.array(values, to_arrow_type(self.field.type))


def whole(low: int, high: int) -> Draw:
    return lambda r: r.randint(low, high)


def decimals(limit: int, scale: int) -> Draw:
    return lambda r: Decimal(f"{r.randint(-limit, limit)}E-{scale}")


def real(r: random.Random) -> float:
    odd = [0.0, -0.0, float("nan"), float("inf"), 1e300, -1e300]
    return r.choice(odd) if r.random() < 0.1 else r.uniform(-1, 1) * 10 ** r.randint(-9, 9)


def single(r: random.Random) -> float:
    return float(np.float32(r.uniform(-1, 1) * 10 ** r.randint(-5, 5)))


def text(r: random.Random) -> str:
    return "".join(r.choices("aäß€😀b", k=r.randint(1, 3)))


def tokens(r: random.Random) -> str:
    return ",".join(r.choices("abcdef", k=r.randint(1, 3)))


def some(draw: Draw, most: int = 3) -> Draw:
    return lambda r: [draw(r) for _ in range(r.randint(0, most))]


def or_null(draw: Draw, share: float = 0.25) -> Draw:
    return lambda r: None if r.random() < share else draw(r)


def entries(draw: Draw) -> Draw:
    return lambda r: [(k, draw(r)) for k in r.sample(range(5), r.randint(0, 3))]


def member(r: random.Random) -> dict[str, Any]:
    return {"id": or_null(whole(0, 3), 0.1)(r), "x": or_null(text)(r), "y": or_null(real)(r)}


def timed(r: random.Random) -> dict[str, Any]:
    return {"x": r.randint(0, 99), "at": or_null(text)(r)}


def timed_first(r: random.Random) -> dict[str, Any]:
    return {"at": or_null(text)(r), "x": r.randint(0, 99)}


MEMBERS = "ROW<id INT, x STRING, y DOUBLE>"
KEYED = {"nested-key": "id"}
INTEGERS = [("TINYINT", 60), ("SMALLINT", 9_000), ("INT", 1 << 29), ("BIGINT", 1 << 61)]
SUBJECTS = [
    *(Subject("sum", name, whole(-limit, limit), {}) for name, limit in INTEGERS),
    *(Subject("product", name, whole(-4, 4), {}) for name, _ in INTEGERS),
    *(Subject(f, "DOUBLE", real, {}) for f in ("sum", "product", "max", "min")),
    *(Subject(f, "FLOAT", single, {}) for f in ("sum", "product", "max", "min")),
    Subject("sum", "DECIMAL(4, 2)", decimals(9_999, 2), {}),
    Subject("sum", "DECIMAL(38, 2)", decimals(10**38 - 1, 2), {}),
    Subject("sum", "DECIMAL(30, 5)", decimals(10**20, 5), {}),
    Subject("product", "DECIMAL(9, 3)", decimals(3_000, 3), {}),
    Subject("product", "DECIMAL(25, 4)", decimals(30_000, 4), {}),
    *(
        Subject(function, type_text, draw, {})
        for function in ("max", "min")
        for type_text, draw in (
            ("STRING", text),
            ("BIGINT", whole(-(1 << 63), (1 << 63) - 1)),
            ("DECIMAL(8, 2)", decimals(10**7, 2)),
            ("DECIMAL(30, 2)", decimals(10**29, 2)),
            ("BYTES", lambda r: r.randbytes(2)),
        )
    ),
    *(Subject(f, "BOOLEAN", lambda r: r.random() < 0.5, {}) for f in ("bool_and", "bool_or")),
    *(
        Subject(function, "STRING", text, {})
        for function in (
            "last_value",
            "last_non_null_value",
            "first_value",
            "first_non_null_value",
            "first_not_null_value",
        )
    ),
    Subject("last_non_null_value", "ARRAY<INT>", some(whole(0, 9)), {}),
    Subject("listagg", "STRING", text, {"list-agg-delimiter": " | "}),
    Subject("listagg", "STRING", tokens, {"distinct": "true"}),
    Subject("collect", "ARRAY<INT>", some(or_null(whole(0, 3))), {}),
    Subject("collect", "ARRAY<DOUBLE>", some(or_null(real)), {"distinct": "true"}),
    Subject("collect", f"ARRAY<{MEMBERS}>", some(or_null(member)), {"distinct": "true"}),
    Subject("collect", "ARRAY<ARRAY<INT>>", some(some(whole(0, 2))), {}),
    Subject("merge_map", "MAP<INT, STRING>", entries(or_null(text)), {}),
    Subject(
        "merge_map_with_keytime", "MAP<INT, ROW<x INT, at STRING>>", entries(or_null(timed)), {}
    ),
    Subject(
        "merge_map_with_keytime",
        "MAP<INT, ROW<at STRING, x INT>>",
        entries(timed_first),
        {"ts-field": "at"},
    ),
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(or_null(member, 0.1)), {}),
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(member), KEYED),
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(or_null(member, 0.1)), KEYED),
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(member), {"nested-key": "id,x"}),
    Subject(
        "nested_update",
        f"ARRAY<{MEMBERS}>",
        some(member),
        {**KEYED, "nested-sequence-field": "y,x"},
    ),
    Subject(
        "nested_update",
        f"ARRAY<{MEMBERS}>",
        some(member),
        {**KEYED, "nested-key-null-strategy": "ignore"},
    ),
    Subject("nested_partial_update", f"ARRAY<{MEMBERS}>", some(member), KEYED),
]
SUBJECTS += [
    Subject(s.function, s.type_text, s.draw, {**s.options, "ignore-retract": "true"})
    for s in SUBJECTS
    if s.type_text in ("STRING", "BIGINT", "ARRAY<INT>")
]
LIMITED = [
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(or_null(member)), {"count-limit": "2"}),
    Subject("nested_update", f"ARRAY<{MEMBERS}>", some(member), {**KEYED, "count-limit": "2"}),
]


@pytest.mark.parametrize("subject", [*SUBJECTS, *LIMITED], ids=str)
@pytest.mark.parametrize("seed", range(SEED, SEED + count(2, whole=8)))
def test_all_rows_of_a_key_at_once_are_as_one_after_the_other(subject: Subject, seed: int) -> None:
    r = random.Random(f"{subject}-{seed}")
    groups, values = drawn_groups(r, subject)
    expected: list[Any] = []
    try:
        for key in range(len(groups)):
            model, state = subject.model(), None
            for row in groups.order[groups.starts[key] : groups.ends[key]]:
                state = model.agg(state, values[row])
            expected.append(state)
    except ModelError:
        with pytest.raises(LakeError):
            subject.build().reduce(subject.column(values), groups)
        return
    found = subject.build().reduce(pa.chunked_array([subject.column(values)]), groups)
    assert found.type == to_arrow_type(subject.field.type)
    found.validate(full=not pa.types.is_decimal(found.type))
    assert plain(subject, found.to_pylist()) == plain(subject, expected)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=8)))
def test_states_follow_every_operation(subject: Subject, seed: int) -> None:
    r = random.Random(f"{subject}-{seed}-operations")
    keys = r.randint(1, 5)
    values = [or_null(subject.draw)(r) for _ in range(40)]
    state = subject.build().accumulator(subject.column(values), keys)
    models, expected = [subject.model() for _ in range(keys)], [None] * keys
    operations = ["add", "add", "add", "add_late", "reset", "clear"]
    if subject.retracts:
        operations.append("retract")
    for _ in range(r.randint(1, 9)):
        operation = r.choice(operations)
        chosen = r.sample(range(keys), r.randint(1, keys))
        rows = [r.randrange(len(values)) for _ in chosen]
        try:
            for key, row in zip(chosen, rows, strict=True):
                expected[key] = after(models[key], operation, expected[key], values[row])
        except ModelError:
            with pytest.raises(LakeError):
                operate(state, operation, chosen, rows)
            return
        operate(state, operation, chosen, rows)
    assert plain(subject, state.result().to_pylist()) == plain(subject, expected)


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.reduces_changes], ids=str)
@pytest.mark.parametrize("seed", range(SEED, SEED + count(2, whole=8)))
def test_retracts_at_once_are_as_one_after_the_other(subject: Subject, seed: int) -> None:
    r = random.Random(f"{subject}-{seed}-changes")
    groups, values = drawn_groups(r, subject)
    retracts = np.array([r.random() < 0.4 for _ in values])
    function = subject.build()
    assert isinstance(function, ReducesChanges)
    expected: list[Any] = []
    try:
        for key in range(len(groups)):
            model, state = subject.model(), None
            for row in groups.order[groups.starts[key] : groups.ends[key]]:
                step = model.retract if retracts[row] else model.agg
                state = step(state, values[row])
            expected.append(state)
    except ModelError:
        with pytest.raises(LakeError):
            function.reduce_changes(subject.column(values), groups, retracts)
        return
    found = function.reduce_changes(subject.column(values), groups, retracts)
    assert plain(subject, found.to_pylist()) == plain(subject, expected)


@pytest.mark.parametrize("options", [{}, KEYED], ids=["all", "keyed"])
def test_a_retract_from_a_nested_table_drops_its_null_elements(options: dict[str, str]) -> None:
    row = {"id": 1, "x": "a", "y": None}
    subject = Subject("nested_update", f"ARRAY<{MEMBERS}>", some(member), options)
    state = subject.build().accumulator(subject.column([[None, row], []]), 1)
    operate(state, "reset", [0], [0])
    operate(state, "retract", [0], [1])
    assert state.result().to_pylist() == [subject.model().retract([None, row], [])] == [[row]]


def test_a_key_with_very_many_rows_is_walked_in_rounds() -> None:
    many, keys = 3_000, 3
    sizes = [many, 1, 2]
    order = np.arange(sum(sizes))
    groups = KeyGroups(order, np.cumsum([0, *sizes[:-1]]))
    values = pa.array(np.ones(len(order), np.int64))
    subject = Subject("sum", "BIGINT", whole(0, 1), {})
    state = subject.build().accumulator(values, keys)
    rounds = 0
    for of_keys, rows in ranks_of(groups):
        state.add(of_keys, rows)
        rounds += 1
    assert rounds == many
    assert state.result().to_pylist() == sizes


def drawn_groups(r: random.Random, subject: Subject) -> tuple[KeyGroups, list[Any]]:
    sizes = [r.randint(1, 12) for _ in range(r.randint(1, 6))]
    values = [or_null(subject.draw)(r) for _ in range(sum(sizes))]
    order = list(range(len(values)))
    r.shuffle(order)
    return KeyGroups(np.array(order), np.cumsum([0, *sizes[:-1]])), values


def operate(state: Any, operation: str, keys: list[int], rows: list[int]) -> None:
    if operation == "clear":
        state.clear(np.array(keys))
    else:
        getattr(state, operation)(np.array(keys), np.array(rows))
        state.result()


def after(model: Aggregator, operation: str, state: Any, value: Any) -> Any:
    match operation:
        case "add":
            return model.agg(state, value)
        case "add_late":
            return model.agg_reversed(state, value)
        case "retract":
            return model.retract(state, value)
        case "reset":
            return value
    return None


def plain(subject: Subject, values: list[Any]) -> list[str]:
    """Values as texts; elements sorted where the function promises no order."""
    in_order = subject.function in ("collect", "nested_update") and not subject.options
    return [repr(value if in_order else without_order(value)) for value in values]


def without_order(value: Any) -> Any:
    if isinstance(value, Decimal) and not value:
        return abs(value)  # Java has no negative zero
    return sorted(map(repr, value)) if isinstance(value, list) else value

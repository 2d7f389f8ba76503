"""Each clause of a MERGE is a write of computed rows: its result is that of SQL's MERGE, and keys
are unique beside a stream.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from tests.sampling import SEED
from tests.unit.mixed.named_rows import NAMES, contents, names, new_catalog, new_table

State = dict[int, str]


def rows_of(state: State) -> pa.Table:
    return names(**{f"_{key}": value for key, value in state.items()})


def some(chance: Random, word: str) -> State:
    return {key: f"{word}{key}" for key in chance.sample(range(12), chance.randint(1, 8))}


def not_in(left: pa.Table, right: pa.Table) -> pa.Table:
    return left.join(right.select(["id"]), "id", join_type="left anti")


def merged(clause: str, target: State, source: State) -> State:
    """The result of the clause in SQL."""
    match clause:
        case "upsert":
            return target | source
        case "insert":
            return source | target
        case "update":
            changed = {key: f"{target[key]}+{source[key]}" for key in target.keys() & source.keys()}
            return target | changed
        case "delete matched":
            return {key: value for key, value in target.items() if key not in source}
        case "replace":
            return {**source}
    lost = target.keys() - source.keys()
    return {key: value for key, value in (target | source).items() if key not in lost}


@pytest.mark.parametrize(
    "clause", ["upsert", "insert", "update", "delete matched", "replace", "not matched by source"]
)
def test_a_clause_has_the_rows_of_sql_and_keeps_what_a_stream_has_changed(clause, tmp_path: Path):
    chance = Random(f"{SEED}:{clause}")
    table = new_table(new_catalog(tmp_path))
    target, source, stream = (some(chance, word) for word in ("t", "s", "new"))
    table.write(rows_of(target))
    given = rows_of(source)
    with table.begin() as batch:
        stored = batch.scan(["id", "name"]).to_arrow()
        table.write(rows_of(stream))
        match clause:
            case "upsert":
                batch.write(given)
            case "insert":
                batch.write(not_in(given, stored))
            case "update":
                both = stored.join(
                    given, "id", right_suffix="_given", join_type="inner"
                ).to_pydict()
                pairs = zip(both["name"], both["name_given"], strict=True)
                values = [f"{old}+{new}" for old, new in pairs]
                batch.write(pa.table([both["id"], values], schema=NAMES))
            case "delete matched":
                batch.write(given, ["-D"] * len(given))
            case "replace":
                batch.overwrite(given, "table")
            case _:
                lost = not_in(stored, given)
                kinds = ["+U"] * len(given) + ["-D"] * len(lost)
                batch.write(pa.concat_tables([given, lost]), kinds)
    assert contents(table) == merged(clause, target, source) | stream, (target, source, stream)
    table.compact(strategy="full", executor="serial")
    assert contents(table.base) == merged(clause, target, source) | stream

"""Java and this library change one table in turns; after each change both read the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.java.iceberg.conftest import JavaIceberg
from tests.sampling import SEED, count

Model: TypeAlias = dict[int, str]
"""The value of each key."""

STEPS = count(40, 150, "STEPS")


class BothSides:
    """The table, and the rows that it must have."""

    def __init__(self, java: JavaIceberg, seed: str) -> None:
        self.java = java
        self.random = random.Random(seed)
        self.model: Model = {}
        self.next_key = 0

    def new_rows(self) -> Model:
        """Up to 40 rows with keys of their own, that are in the model from now on."""
        keys = range(self.next_key, self.next_key + self.random.randint(1, 40))
        self.next_key = keys.stop
        rows = {key: f"v{key}" for key in keys}
        self.model |= rows
        return rows

    def some_keys(self) -> tuple[int, int]:
        """A range of keys, with its end; it may hold none."""
        first = self.random.randint(0, self.next_key)
        return first, first + self.random.randint(1, 30)

    def known_keys(self, most: int) -> list[int]:
        """A few keys of the table, sorted."""
        keys = sorted(self.model)
        return sorted(self.random.sample(keys, min(len(keys), most)))


def arrow(rows: Model) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.string())})


def values(rows: Model) -> str:
    return ", ".join(f"({key}L, '{value}')" for key, value in rows.items())


def we_append(both: BothSides) -> None:
    both.java.ours().write(arrow(both.new_rows()))


def java_appends(both: BothSides) -> None:
    both.java.sql(f"INSERT INTO {{table}} VALUES {values(both.new_rows())}")


def we_delete(both: BothSides) -> None:
    first, end = both.some_keys()
    both.java.ours().delete(f"id >= {first} and id < {end}")
    both.model = {k: v for k, v in both.model.items() if not first <= k < end}


def java_deletes(both: BothSides) -> None:
    first, end = both.some_keys()
    both.java.sql(f"DELETE FROM {{table}} WHERE id >= {first} AND id < {end}")
    both.model = {k: v for k, v in both.model.items() if not first <= k < end}


def java_updates(both: BothSides) -> None:
    first, end = both.some_keys()
    both.java.sql(f"UPDATE {{table}} SET v = concat(v, 'j') WHERE id >= {first} AND id < {end}")
    both.model = {k: v + "j" if first <= k < end else v for k, v in both.model.items()}


def we_update(both: BothSides) -> None:
    first, end = both.some_keys()
    both.java.ours().update(
        f"id >= {first} and id < {end}",
        {"v": lambda rows: pc.binary_join_element_wise(rows["v"], "u", "")},
    )
    both.model = {k: v + "u" if first <= k < end else v for k, v in both.model.items()}


def we_upsert(both: BothSides) -> None:
    rows = {key: f"p{key}" for key in both.known_keys(10)} | both.new_rows()
    both.java.ours().upsert(arrow(rows), by=["id"])
    both.model |= rows


def java_merges(both: BothSides) -> None:
    changed = {key: f"m{key}" for key in both.known_keys(10)}
    rows = changed | both.new_rows()
    both.java.sql(
        f"MERGE INTO {{table}} t USING (SELECT * FROM VALUES {values(rows)} AS s(id, v)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    both.model |= rows


def we_compact(both: BothSides) -> None:
    both.java.ours().compact(strategy=both.random.choice(["minor", "full"]))


def we_sort(both: BothSides) -> None:
    both.java.ours().compact(strategy="full", order_by=["v"])


def we_compact_manifests(both: BothSides) -> None:
    both.java.ours().compact_manifests()


def we_compact_deletes(both: BothSides) -> None:
    both.java.ours().compact_deletes()


def we_convert_equality_deletes(both: BothSides) -> None:
    both.java.ours().compact_deletes(convert_equality=True)


def we_analyze(both: BothSides) -> None:
    both.java.ours().analyze()


def java_compacts(both: BothSides) -> None:
    rewrite_all = both.random.choice(["true", "false"])
    both.java.call("rewrite_data_files", f"options => map('rewrite-all', '{rewrite_all}')")


def java_analyzes(both: BothSides) -> None:
    both.java.call("compute_table_stats")


def java_rewrites_manifests(both: BothSides) -> None:
    both.java.call("rewrite_manifests")


def java_rewrites_position_deletes(both: BothSides) -> None:
    both.java.call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")


def we_expire(both: BothSides) -> None:
    both.java.ours().expire_snapshots(older_than="0 s", retain_min=4)


def java_expires(both: BothSides) -> None:
    both.java.call(
        "expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 4"
    )


CHANGES: list[Callable[[BothSides], None]] = [
    we_append,
    java_appends,
    we_delete,
    java_deletes,
    we_update,
    java_updates,
    we_upsert,
    java_merges,
    we_compact,
    we_sort,
    we_compact_manifests,
    we_compact_deletes,
    we_convert_equality_deletes,
    we_analyze,
    java_compacts,
    java_analyzes,
    java_rewrites_manifests,
    java_rewrites_position_deletes,
    we_expire,
    java_expires,
]


def read_by_us(table: Any, **when: Any) -> list[tuple[Any, ...]]:
    rows = table.scan(**when).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_random_history(java_iceberg: JavaIceberg, version: int, mode: str):
    modes = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
    java_iceberg.sql(
        "CREATE TABLE {table} (id BIGINT NOT NULL, v STRING) USING iceberg "
        f"PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version'='{version}', {modes})"
    )
    both = BothSides(java_iceberg, f"{SEED} {java_iceberg.name}")
    done: list[str] = []
    for step in range(STEPS):
        change = both.random.choice(CHANGES) if step else we_append
        done.append(change.__name__)
        change(both)
        expected = sorted(both.model.items(), key=repr)
        assert read_by_us(java_iceberg.ours()) == expected, done
        assert java_iceberg.rows() == expected, done
    table = java_iceberg.ours()
    for snapshot in table.snapshots():
        id = snapshot.snapshot_id
        assert read_by_us(table, snapshot=id) == java_iceberg.rows(id), done

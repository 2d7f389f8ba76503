"""Java and this library change one table of a SQL catalog at once: no row is lost, and no deleted
row is read again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest
from py4j.protocol import Py4JJavaError

from lakeformat.errors import CommitConflictError
from tests.java.iceberg.conftest import JavaIceberg
from tests.java.iceberg.test_in_turns import Model, arrow, read_by_us, values
from tests.sampling import SEED, count

STEPS = count(15, 60, "STEPS")
FIRST_KEY_OF_JAVA = 1_000_000

Change: TypeAlias = "Callable[[Side], None]"


class Side:
    """One writer with keys of its own, and the rows with these keys that were acknowledged."""

    def __init__(self, java: JavaIceberg, first_key: int, changes: list[Change]) -> None:
        self.java = java
        self.first_key = self.next_key = first_key
        self.changes = changes
        self.model: Model = {}
        self.conflicts = 0

    def live(self) -> None:
        """Make changes one after the other; one that lost to the other side changes nothing."""
        chosen = random.Random(f"{SEED} {self.java.name} {self.first_key}")
        for _ in range(STEPS):
            before = dict(self.model)
            try:
                chosen.choice(self.changes)(self)
            except CommitConflictError:
                self.model, self.conflicts = before, self.conflicts + 1
            except Py4JJavaError as error:
                if "CommitFailedException" not in str(error) and "ValidationException" not in str(
                    error
                ):
                    raise
                self.model, self.conflicts = before, self.conflicts + 1

    def new_rows(self) -> Model:
        """Ten rows with new keys, that are in the model from now on."""
        keys = range(self.next_key, self.next_key + 10)
        self.next_key = keys.stop
        rows = {key: f"v{key}" for key in keys}
        self.model |= rows
        return rows

    def oldest_keys(self) -> tuple[int, int]:
        """The range of the five oldest keys of this side, which are deleted from the model."""
        keys = sorted(self.model)[:5] or [self.next_key]
        self.model = {key: value for key, value in self.model.items() if key not in keys}
        return keys[0], keys[-1]


def we_append(side: Side) -> None:
    side.java.ours().write(arrow(side.new_rows()))


def we_delete(side: Side) -> None:
    first, last = side.oldest_keys()
    side.java.ours().delete(f"id >= {first} and id <= {last}")


def we_compact(side: Side) -> None:
    side.java.ours().compact(strategy="full")


def java_appends(side: Side) -> None:
    side.java.sql(f"INSERT INTO {{table}} VALUES {values(side.new_rows())}")


def java_deletes(side: Side) -> None:
    first, last = side.oldest_keys()
    side.java.sql(f"DELETE FROM {{table}} WHERE id BETWEEN {first} AND {last}")


def java_compacts(side: Side) -> None:
    side.java.call("rewrite_data_files", "options => map('rewrite-all', 'true')")


@pytest.mark.parametrize("java_iceberg", ["sql"], indirect=True)
@pytest.mark.parametrize("version", [2, 3])
def test_two_writers_of_one_table(java_iceberg: JavaIceberg, version: int):
    modes = ", ".join(f"'write.{each}.mode'='merge-on-read'" for each in ("delete", "update"))
    levels = "'write.delete.isolation-level'='snapshot'"
    java_iceberg.sql(
        "CREATE TABLE {table} (id BIGINT NOT NULL, v STRING) USING iceberg TBLPROPERTIES "
        f"('format-version'='{version}', 'commit.retry.num-retries'='20', {modes}, {levels})"
    )
    we = Side(java_iceberg, 0, [we_append, we_append, we_delete, we_compact])
    java = Side(
        java_iceberg, FIRST_KEY_OF_JAVA, [java_appends, java_appends, java_deletes, java_compacts]
    )
    with ThreadPoolExecutor(2) as both:
        for done in [both.submit(side.live) for side in (we, java)]:
            done.result()
    expected = sorted((we.model | java.model).items(), key=repr)
    assert read_by_us(java_iceberg.ours()) == expected
    assert java_iceberg.rows() == expected
    assert we.conflicts < STEPS
    assert java.conflicts < STEPS

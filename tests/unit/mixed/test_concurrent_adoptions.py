"""Two processes adopt one table, and the adoption that created the change store fails."""

from __future__ import annotations

import threading
from itertools import combinations_with_replacement
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import adopt_pair
from tests.unit.mixed.named_rows import contents, names, new_catalog

STEPS = ("before the mark", "after the mark", "before the removal", "after the removal")
ROWS = {1: "a", 2: "b"}
LONG = 60


class Second(threading.Thread):
    """The second adoption, which has found the change store of the first one.

    It stops before its commit, and before it looks at the change store again.
    """

    def __init__(self, catalog: lake.IcebergCatalog, publish: Any) -> None:
        super().__init__(daemon=True)
        self._catalog, self._publish = catalog, publish
        self._turns = {each: threading.Event() for each in ("commit", "look")}
        self._reached = {each: threading.Event() for each in ("found", "committed")}
        self.error: lake.LakeError | None = None
        self.is_written = False

    def run(self) -> None:
        try:
            self._catalog.adopt_table("db.t", primary_key=["id"])
        except lake.LakeError as error:
            self.error = error
        self._reached["found"].set()

    def publish(self, *given: Any) -> None:
        self._reached["found"].set()
        assert self._turns["commit"].wait(LONG)
        try:
            self._publish(*given)
        finally:
            self._reached["committed"].set()
        assert self._turns["look"].wait(LONG)

    def begin(self) -> None:
        self.start()
        assert self._reached["found"].wait(LONG)

    def commit(self) -> None:
        """Make the table the base store; a stream writes to it at once."""
        self._turns["commit"].set()
        assert self._reached["committed"].wait(LONG)
        try:
            self._catalog.table("db.t").write(names(_3="stream"))
            self.is_written = True
        except (lake.CommitConflictError, lake.CorruptTableError):
            pass  # the change store is marked, or does not exist any more

    def end(self) -> None:
        self._turns["look"].set()
        self.join(LONG)
        assert not self.is_alive()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("commits", "looks"), [*combinations_with_replacement(STEPS, 2)])
def test_a_failed_adoption_drops_no_change_store_that_another_one_uses(
    commits, looks, tmp_path, monkeypatch
):
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", [("id", "BIGINT"), ("name", "STRING")])
    table.write(names(_1="a"))
    second = Second(catalog, adopt_pair.publish_adoption)
    first, left = threading.current_thread(), [*STEPS]

    def at(step: str) -> None:
        if threading.current_thread() is first and step in left:
            left.remove(step)
            if step == commits:
                second.commit()
            if step == looks:
                second.end()

    def stopped(function: Any, before: str, after: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            at(before)
            result = function(*given, **named)
            at(after)
            return result

        return call

    def published(*given: Any) -> None:
        if threading.current_thread() is not first:
            second.publish(*given)
            return
        table.write(names(_2="b"))  # so this adoption is refused
        second.begin()
        publish(*given)

    publish, metastore = adopt_pair.publish_adoption, catalog._metastore
    marked = stopped(adopt_pair.commit_metadata, STEPS[0], STEPS[1])
    removed = stopped(metastore.remove_new_table, STEPS[2], STEPS[3])
    monkeypatch.setattr(adopt_pair, "publish_adoption", published)
    monkeypatch.setattr(adopt_pair, "commit_metadata", marked)
    monkeypatch.setattr(metastore, "remove_new_table", removed)
    with pytest.raises(lake.CommitConflictError, match="since its keys were checked"):
        catalog.adopt_table("db.t", primary_key=["id"])
    for step in STEPS:
        at(step)
    stored = {**ROWS, 3: "stream"} if second.is_written else ROWS
    assert contents(catalog.table("db.t")) == stored
    if second.error is not None:
        assert isinstance(second.error, lake.CommitConflictError)
        assert "repeat the call" in str(second.error)
        assert isinstance(catalog.table("db.t"), lake.IcebergTable)
        assert metastore.tables("db") == ["t"]
        monkeypatch.undo()
        catalog.adopt_table("db.t", primary_key=["id"])
    mixed = catalog.table("db.t")
    assert isinstance(mixed, lake.MixedTable)
    mixed.write(names(_1="new"))
    assert contents(catalog.table("db.t")) == {**stored, 1: "new"}

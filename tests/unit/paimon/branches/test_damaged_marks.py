"""Damaged marks of branches: the advice of the error leads back to a usable table."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.paimon.branches import rename
from lakeformat.paimon.branches.marker import Move, mark
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows

ADVICE = (
    r"branch/\.unfinished-dev \(0 bytes\) is not JSON: .*; the file hides a branch .* delete the "
    r"file and repeat the call.* delete the branch that the file is named after, and repeat the "
    r"call"
)


@pytest.fixture
def rows(monkeypatch) -> KeyedRows:
    """A table in a storage that cannot move directories, with the copy ``dev`` of main."""
    monkeypatch.setattr(rename, "mover", lambda _: None)
    rows = KeyedRows()
    for number in (1, 2):
        rows.commit(("+I", number, f"v{number}"))
    rows.table.branches.create("dev", snapshot=2)
    return rows


def damage_mark(rows: KeyedRows) -> str:
    path = rows.table._handle.layout.unfinished_branch("dev")
    rows.table._handle.storage.overwrite(path, b"")
    return path


def remove_snapshot(rows: KeyedRows) -> None:
    """Make the branch ``dev`` incomplete."""
    layout = rows.table._handle.layout.on_branch("dev")
    rows.table._handle.storage.delete(layout.snapshot(2))


def values(rows: KeyedRows, branch: str) -> list[str]:
    table = rows.catalog.table(f"shop.t$branch_{branch}")
    return sorted(row["v"] for row in table.scan().to_arrow().to_pylist())


def test_an_interrupted_creation_is_repeated_without_its_mark_and_branch(rows):
    branches = rows.table.branches
    remove_snapshot(rows)
    path = damage_mark(rows)
    for call in (
        lambda: branches.create("dev", snapshot=2),
        lambda: branches.delete("dev"),
        lambda: branches.rename("dev", "next"),
    ):
        with pytest.raises(lake.CorruptTableError, match=ADVICE):
            call()

    rows.table._handle.storage.delete(path)
    with pytest.raises(lake.AlreadyExistsError, match="delete that branch first"):
        branches.create("dev", snapshot=2)
    branches.delete("dev")
    branches.create("dev", snapshot=2)
    assert (values(rows, "dev"), missing(rows.table)) == (["v1", "v2"], set())


def test_an_interrupted_deletion_is_repeated_without_its_mark(rows):
    rows.table._handle.storage.delete(damage_mark(rows))
    rows.table.branches.delete("dev")
    assert rows.table.branches.list() == []
    assert (missing(rows.table), unneeded(rows.table)) == (set(), set())


NAMES = [pytest.param("dev", "other", id="old"), pytest.param("other", "dev", id="new")]


@pytest.mark.parametrize(("old", "new"), NAMES)
def test_a_rename_with_two_marks_is_repeated_without_the_damaged_one(rows, old, new):
    """Both names are hidden when the copy is complete."""
    rows.table.branches.create("other", snapshot=2)
    assert mark(rows.table._handle, "other", Move(old, new))
    rows.table._handle.storage.delete(damage_mark(rows))
    rows.table.branches.rename(old, new)
    assert [branch.name for branch in rows.table.branches.list()] == [new]
    assert (values(rows, new), missing(rows.table)) == (["v1", "v2"], set())


@pytest.mark.parametrize(("old", "new"), NAMES)
def test_a_rename_with_one_mark_is_repeated_without_it_and_its_branch(rows, old, new):
    """Before both are hidden the new name is incomplete, after that the old one."""
    branches = rows.table.branches
    branches.create("other", snapshot=2)
    remove_snapshot(rows)
    rows.table._handle.storage.delete(damage_mark(rows))
    with pytest.raises(lake.AlreadyExistsError):
        branches.rename(old, new)
    branches.delete("dev")
    if old == "other":
        branches.rename(old, new)
    assert [branch.name for branch in branches.list()] == [new]
    assert (values(rows, new), missing(rows.table)) == (["v1", "v2"], set())

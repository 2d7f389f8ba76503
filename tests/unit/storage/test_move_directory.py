"""Moving a directory on a storage that must copy it: nothing is lost beside other writers."""

from __future__ import annotations

from contextlib import suppress

import pytest

from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    NotFoundError,
)
from lakeformat.storage import MemoryStorage
from lakeformat.storage.move_directory import move_directory, mover

TABLE = {
    "old/bucket-0/data-1": b"rows" * 1000,
    "old/schema/schema-0": b"{ours}",
    "old/schema/schema-1": b"{ours, changed}",
    "old/snapshot/snapshot-1": b"{first}",
    "old/snapshot/LATEST": b"1",
}
MOVED = {path.replace("old", "new", 1): content for path, content in TABLE.items()}


class Bucket(MemoryStorage):
    """One that cannot move a directory at once."""

    rename_directory = None


@pytest.fixture
def storage() -> Bucket:
    return with_files(TABLE)


def with_files(files: dict[str, bytes]) -> Bucket:
    storage = Bucket()
    for path, content in files.items():
        storage.create(path, content)
    return storage


def move(storage: MemoryStorage, old: str = "old", new: str = "new") -> None:
    move_directory(storage, old, new, last="schema")


def before(storage: Bucket, method: str, path: str, act) -> None:
    """Let another program act right before the first such call about that path."""
    call = getattr(storage, method)

    def interrupted(asked: str, *arguments):
        if asked == path:
            setattr(storage, method, call)
            act()
        return call(asked, *arguments)

    setattr(storage, method, interrupted)


def test_every_file_moves_and_nothing_stays_behind(storage):
    assert mover(storage) is None
    move(storage)
    assert storage.files() == MOVED


def test_files_of_an_earlier_try_are_taken_over(storage):
    storage.create("new/bucket-0/data-1", TABLE["old/bucket-0/data-1"])
    storage.create("new/schema/schema-0", TABLE["old/schema/schema-0"])
    storage.create("new/schema/.schema-1.left-by-a-crash.tmp", b"{ou")
    move(storage)
    assert storage.files() == MOVED | {"new/schema/.schema-1.left-by-a-crash.tmp": b"{ou"}


@pytest.mark.parametrize("torn", [b"rows" * 999, b"", b"r0ws" * 1000])
def test_a_file_of_an_earlier_try_with_other_content_is_copied_again(storage, torn):
    """The last one has the right size."""
    storage.create("new/bucket-0/data-1", torn)
    move(storage)
    assert storage.files() == MOVED


@pytest.mark.parametrize(
    "theirs",
    [
        {"new/schema/schema-0": b"{them}"},
        {"new/schema/schema-0": b"{them}", "new/snapshot/LATEST": b"9"},
        {"new/schema/schema-0": TABLE["old/schema/schema-0"], "new/schema/schema-2": b"{}"},
        {"new/bucket-0/data-2": b"their rows"},
        {"new/notes.txt": b"theirs"},
    ],
)
def test_a_place_with_files_of_another_is_refused_and_nothing_changes(storage, theirs):
    for path, content in theirs.items():
        storage.create(path, content)
    storage.open_output = lambda path: pytest.fail(f"{path} was copied in vain")
    with pytest.raises(
        AlreadyExistsError,
        match=r"memory://default/new/.* exists, (and another writer|but not in the old)",
    ):
        move(storage)
    assert storage.files() == TABLE | theirs


@pytest.mark.parametrize("schema", ["schema-0", "schema-1"])
def test_a_table_made_meanwhile_stays_and_so_does_ours(storage, schema):
    theirs = {f"new/schema/{schema}": b"{theirs}"}
    path = f"new/schema/{schema}"
    before(storage, "create", path, lambda: storage.overwrite(path, theirs[path]))
    with pytest.raises(AlreadyExistsError, match=rf"new/schema/{schema} exists, .*is unchanged"):
        move(storage)
    assert storage.files() == TABLE | theirs


def test_what_a_table_made_meanwhile_has_written_is_not_replaced(storage):
    theirs = {"new/schema/schema-0": b"{theirs}", "new/snapshot/snapshot-1": b"{their first}"}

    def make() -> None:
        for path, content in theirs.items():
            storage.create(path, content)

    before(storage, "open_output", "new/snapshot/snapshot-1", make)
    with pytest.raises(AlreadyExistsError, match="exists, and another writer"):
        move(storage)
    assert storage.files() == TABLE | theirs


@pytest.mark.parametrize(
    "late",
    ["old/snapshot/snapshot-2", "old/snapshot/LATEST", "old/schema/schema-2"],
)
@pytest.mark.parametrize("when", ["open_output", "create"])
def test_a_commit_to_the_old_table_meanwhile_is_not_lost(storage, late, when):
    path = "new/snapshot/LATEST" if when == "open_output" else "new/schema/schema-1"
    before(storage, when, path, lambda: storage.overwrite(late, b"written meanwhile"))
    with pytest.raises(CommitConflictError, match="another writer changed it"):
        move(storage)
    assert storage.files() == TABLE | {late: b"written meanwhile"}
    move(storage)
    assert storage.files() == MOVED | {late.replace("old", "new", 1): b"written meanwhile"}


def test_a_second_call_that_finishes_the_move_keeps_its_files(storage):
    """Also those that it took over from the first call."""
    before(storage, "create", "new/schema/schema-1", lambda: move(storage))
    with pytest.raises(NotFoundError, match=r"another call .* directory are kept"):
        move(storage)
    assert storage.files() == MOVED


def test_a_second_call_that_was_stopped_while_it_removed_is_finished(storage):
    def stop() -> None:
        storage.create("new/schema/schema-1", TABLE["old/schema/schema-1"])
        storage.delete("old/schema/schema-0")

    before(storage, "create", "new/schema/schema-1", stop)
    with pytest.raises(NotFoundError, match=r"another call .* directory are kept"):
        move(storage)
    move(storage)
    assert storage.files() == MOVED


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_second_call_that_deletes_before_the_first_compares_is_not_another_writer(
    storage, is_stopped
):
    def finish() -> None:
        if is_stopped:
            before(storage, "delete_directory", "old", lambda: pytest.fail("stopped"))
        with suppress(pytest.fail.Exception):
            move(storage)

    before(storage, "list", "new/schema", finish)
    with pytest.raises(NotFoundError, match=r"another call of this move, or a drop"):
        move(storage)
    assert ("new/.moving.tmp" in storage.files()) is is_stopped
    if is_stopped:
        move(storage)
    assert storage.files() == MOVED


def test_a_table_that_is_dropped_once_its_copy_is_complete_is_named(storage):
    """The copy may as well be the work of a second call, so it is kept."""

    def drop() -> None:
        before(storage, "list", "old", lambda: storage.delete_directory("old"))

    before(storage, "create", "new/schema/schema-1", drop)
    with pytest.raises(NotFoundError, match=r"or a drop of the old .* drop the new table, too"):
        move(storage)
    move(storage)
    assert storage.files() == MOVED


def test_the_copies_of_a_table_that_is_dropped_meanwhile_are_deleted(storage):
    before(
        storage, "open_output", "new/snapshot/snapshot-1", lambda: storage.delete_directory("old")
    )
    with pytest.raises(CommitConflictError, match=r"another writer changed it"):
        move(storage)
    assert storage.files() == {}


def test_a_try_that_was_stopped_while_it_removed_is_finished(storage):
    for path, content in MOVED.items():
        storage.create(path, content)
    storage.delete_directory("old/schema")
    storage.delete("old/bucket-0/data-1")
    move(storage)
    assert storage.files() == MOVED


def test_what_is_left_of_the_old_place_is_kept_unless_the_new_one_has_it(storage):
    for path, content in MOVED.items():
        storage.create(path, content)
    storage.delete_directory("old/schema")
    storage.overwrite("old/bucket-0/data-1", b"other rows")
    kept = storage.files()
    with pytest.raises(AlreadyExistsError, match="exists, but not in the old"):
        move(storage)
    assert storage.files() == kept


@pytest.mark.parametrize(("old", "new"), [("a", "a"), ("a", "/a"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.parametrize("kind", [Bucket, MemoryStorage])
def test_a_directory_does_not_move_into_itself(kind, old, new):
    storage = kind()
    storage.create("a/b/schema/schema-0", b"{}")
    with pytest.raises(InvalidRequestError, match="inside the other"):
        move(storage, old, new)
    assert storage.files() == {"a/b/schema/schema-0": b"{}"}

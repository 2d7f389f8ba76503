"""Publication under a lock, on a storage that could not decide a race by itself."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from lakeformat.errors import LockUnavailableError, UnavailableError, UnsupportedError
from lakeformat.storage import LocalStorage, LockedCreation, MemoryStorage, open_storage


class Overwriting(MemoryStorage):
    """Any write replaces what is there."""

    def create(self, path: str, content: bytes) -> bool:
        raise UnsupportedError("no conditional write")


class RecordingLock:
    """A lock that records its calls, and may be lost after some checks."""

    def __init__(self, looks: int = 100) -> None:
        self.looks = looks
        self.log: list[str] = []

    @contextmanager
    def hold(self, key: str):
        self.log.append(f"hold {key}")
        try:
            yield self
        finally:
            self.log.append("release")

    def require_time(self, seconds: float = 0.0) -> None:
        self.looks -= 1
        self.log.append(f"look for {seconds:g} s" if seconds else "look")
        if self.looks < 0:
            raise LockUnavailableError("the lock has run out")

    def keep(self) -> None:
        self.log.append("keep")


def test_the_lock_is_looked_at_right_before_the_write():
    lock = RecordingLock()
    storage = Overwriting()
    storage.overwrite = noted(storage.overwrite, lock, "write")
    storage.exists = noted(storage.exists, lock, "exists")
    assert LockedCreation(storage, lock, "shop.orders").create("s/1", b"x") is True
    assert lock.log == ["hold shop.orders", "look", "exists", "look", "write", "release"]


@pytest.mark.parametrize(
    ("kind", "looks"), [(MemoryStorage, 0), (Overwriting, 0), (Overwriting, 1)]
)
def test_nothing_is_written_once_the_lock_may_be_anothers(kind, looks):
    lock, storage = RecordingLock(looks), kind()
    with pytest.raises(LockUnavailableError, match="run out"):
        LockedCreation(storage, lock, "shop.orders").create("s/1", b"x")
    assert storage.files() == {}
    assert lock.log[-1] == "release"


def test_a_storage_that_decides_by_itself_does_so_under_the_lock_too():
    lock, storage = RecordingLock(), MemoryStorage()
    locked = LockedCreation(storage, lock, "shop.orders")
    assert [locked.create("s/1", b"a"), locked.create("s/1", b"b")] == [True, False]
    assert lock.log == ["hold shop.orders", "look", "release"] * 2
    assert storage.files() == {"s/1": b"a"}


def test_what_another_wrote_over_ours_is_not_ours():
    """A writer without the lock writes right after ours."""
    storage = Overwriting()
    write = storage.overwrite

    def write_and_lose(path: str, content: bytes) -> None:
        write(path, content)
        write(path, b"another's")

    storage.overwrite = write_and_lose
    assert LockedCreation(storage, RecordingLock(), "shop.orders").create("s/1", b"x") is False


def test_what_is_gone_after_the_write_leaves_the_outcome_open():
    storage = Overwriting()
    storage.overwrite = lambda path, content: None
    with pytest.raises(UnavailableError, match="is missing now"):
        LockedCreation(storage, RecordingLock(), "shop.orders").create("s/1", b"x")


@pytest.mark.parametrize("error", [UnavailableError, KeyboardInterrupt])
def test_a_lost_answer_of_the_write_leaves_the_outcome_open_and_keeps_the_lock(error):
    """A late write would replace the write of the next holder."""
    storage, lock = Overwriting(), RecordingLock()
    storage.overwrite = losing(storage.overwrite, error)
    with pytest.raises(error, match="lost"):
        LockedCreation(storage, lock, "shop.orders").create("s/1", b"x")
    assert storage.files() == {"s/1": b"x"}
    assert lock.log[-2:] == ["keep", "release"]


def test_a_lock_around_another_is_kept_too():
    storage, inner, outer = Overwriting(), RecordingLock(), RecordingLock()
    storage.overwrite = losing(storage.overwrite, UnavailableError)
    with pytest.raises(UnavailableError, match="lost"):
        LockedCreation(LockedCreation(storage, inner, "all"), outer, "shop.orders").create("s", b"")
    assert "keep" in inner.log
    assert "keep" in outer.log


def test_a_lost_answer_of_a_conditional_write_needs_no_lock_any_more():
    """It is refused if it arrives after another's."""
    storage, lock = MemoryStorage(), RecordingLock()
    storage.create = losing(storage.create, UnavailableError)
    with pytest.raises(UnavailableError, match="lost"):
        LockedCreation(storage, lock, "shop.orders").create("s/1", b"x")
    assert "keep" not in lock.log


def test_the_lock_has_to_last_for_the_longest_write_of_the_storage():
    class Slow(Overwriting):
        longest_write_seconds = 105.0

    lock = RecordingLock()
    assert LockedCreation(Slow(), lock, "shop.orders").create("s/1", b"x") is True
    assert "look for 105 s" in lock.log


def test_a_client_of_an_object_store_knows_how_long_it_repeats_a_write():
    options = {"s3.access-key": "key", "s3.secret-key": "secret"}
    default, _ = open_storage("s3://lake", options)
    slow, _ = open_storage("s3://lake", {**options, "s3.connection.timeout": "200s"})
    assert [storage.longest_write_seconds for storage in (default, slow)] == [105, 275]


def test_commits_queue_up_as_they_would_without_the_lock(tmp_path):
    """Each publication takes the lock; the writer whose turn it is prepares it undisturbed."""
    locked = LockedCreation(LocalStorage(), RecordingLock(), "shop.orders")
    waits = []
    with locked.turn(str(tmp_path), waits.append), locked.turn(str(tmp_path), waits.append):
        assert sum(waits) > 0
    with LockedCreation(MemoryStorage(), RecordingLock(), "x").turn("snapshot", waits.append):
        pass


def losing(act, error: type[BaseException]):
    def lose(*arguments):
        act(*arguments)
        raise error("the answer is lost")

    return lose


def noted(act, lock: RecordingLock, word: str):
    def note(*arguments):
        lock.log.append(word)
        return act(*arguments)

    return note

"""One writer creates a file, and knows it although the storage lost its answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    LakeError,
    LockUnavailableError,
    UnavailableError,
)
from lakeformat.storage import MemoryStorage
from lakeformat.tables.create_once import (
    PublishOutcome,
    create_once,
    create_or_find,
    try_to_create,
)

COMMITTED, LOST, UNKNOWN = PublishOutcome.COMMITTED, PublishOutcome.LOST, PublishOutcome.UNKNOWN
FILE = "table/v2"
Create = Callable[["FaultyStorage", str, bytes], bool]


class FaultyStorage(MemoryStorage):
    """A storage that runs one function of ``calls`` for each call of ``create``."""

    def __init__(self, *calls: Create) -> None:
        super().__init__()
        self.calls = list(calls)
        self.reads = 0

    def create(self, path: str, content: bytes) -> bool:
        return self.calls.pop(0)(self, path, content)

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        self.reads += 1
        return super().read(path, limit)


def create(storage: FaultyStorage, path: str, content: bytes) -> bool:
    return MemoryStorage.create(storage, path, content)


def lose_the_answer(storage: FaultyStorage, path: str, content: bytes) -> bool:
    create(storage, path, content)
    raise UnavailableError("no answer")


def lose_the_request(storage: FaultyStorage, path: str, content: bytes) -> bool:
    raise UnavailableError("no answer")


def let_another_be_first(storage: FaultyStorage, path: str, content: bytes) -> bool:
    create(storage, path, b"of another writer")
    raise UnavailableError("no answer")


def refuse(storage: FaultyStorage, path: str, content: bytes) -> bool:
    raise LockUnavailableError("the lock is lost")


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([create], COMMITTED),
        ([lose_the_answer], COMMITTED),
        ([lose_the_request, create], COMMITTED),
        ([lose_the_request, lose_the_answer], COMMITTED),
        ([let_another_be_first], LOST),
        ([lose_the_request, let_another_be_first], LOST),
        ([lose_the_request] * 3, UNKNOWN),
        ([lose_the_request, refuse], UNKNOWN),
    ],
    ids=lambda each: "-".join(one.__name__ for one in each) if isinstance(each, list) else None,
)
def test_the_writer_of_the_file_is_found_out(calls, outcome):
    storage = FaultyStorage(*calls)
    assert try_to_create(storage, FILE, b"ours") is outcome
    assert not storage.calls


def test_a_taken_name_is_lost_unless_a_repeated_request_has_created_it():
    storage = FaultyStorage(create, create, create)
    assert try_to_create(storage, FILE, b"of another writer") is COMMITTED
    assert try_to_create(storage, FILE, b"ours") is LOST
    assert try_to_create(storage, FILE, b"of another writer") is COMMITTED
    assert storage.reads == 2


def test_a_certain_refusal_is_raised_as_it_is():
    with pytest.raises(LockUnavailableError, match="the lock is lost"):
        try_to_create(FaultyStorage(refuse), FILE, b"ours")


def test_an_unknown_outcome_is_an_error_that_names_the_file():
    with pytest.raises(CommitOutcomeUnknownError, match="v2 got no answer") as caught:
        create_once(FaultyStorage(*[lose_the_request] * 3), FILE, b"ours")
    assert isinstance(caught.value, LakeError)
    assert create_once(FaultyStorage(create), FILE, b"ours")
    assert not create_once(FaultyStorage(let_another_be_first), FILE, b"ours")


def test_a_file_that_two_writers_may_give_the_same_content_is_found_after_a_lost_answer():
    assert create_or_find(FaultyStorage(create), FILE, b"ours")
    assert create_or_find(FaultyStorage(lose_the_answer), FILE, b"ours")
    assert not create_or_find(FaultyStorage(let_another_be_first), FILE, b"ours")
    storage = FaultyStorage(create, create)
    assert create_or_find(storage, FILE, b"ours")
    assert not create_or_find(storage, FILE, b"ours"), "the other writer's file has the name"


@pytest.mark.parametrize("call", [lose_the_request, refuse])
def test_a_file_that_does_not_exist_after_a_lost_answer_is_an_error(call):
    storage = FaultyStorage(call)
    with pytest.raises(UnavailableError):
        create_or_find(storage, FILE, b"ours")
    assert storage.reads == (call is lose_the_request), "a certain refusal needs no read"

"""A move by copying that is stopped at any call loses nothing, and a repeat finishes it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from lakeformat.errors import LakeError, NotFoundError, UnavailableError
from lakeformat.storage.move_directory import move_directory
from lakeformat.testing import CrashableStorage, Fault, PowerCut
from lakeformat.testing.faults import kinds_for

FILES = {
    "bucket-0/data-1": b"rows" * 1000,
    "schema/schema-0": b"{first}",
    "schema/schema-1": b"{second}",
    "snapshot/LATEST": b"1",
    "snapshot/snapshot-1": b"{}",
}


def inside(storage: CrashableStorage, directory: str) -> dict[str, bytes]:
    """Its files without what a crash may leave beside any other."""
    return {
        path.removeprefix(f"{directory}/"): content
        for path, content in storage.files(directory).items()
        if not path.endswith(".tmp")
    }


def move(storage: CrashableStorage) -> None:
    move_directory(storage, "old", "new", last="schema")


class Twins(CrashableStorage):
    """Lets a second call make the whole move before one of the calls of the first."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def _call(self, operation, path, act, torn=None):
        if len(self.log) + 1 == self._at:
            self._at = 0
            with suppress(NotFoundError):  # the first call has deleted originals already
                move(self)
        return super()._call(operation, path, act, torn)


def filled(storage: CrashableStorage) -> CrashableStorage:
    for path, content in FILES.items():
        storage.create(f"old/{path}", content)
    return storage


def test_two_moves_at_once_bring_all_to_the_new_place():
    calm = filled(CrashableStorage())
    begin = len(calm.log)
    move(calm)
    for call in calm.log[begin:]:
        storage = filled(Twins(call.number))
        with suppress(LakeError):
            move(storage)
        assert inside(storage, "new") == FILES, call
        assert storage.files("old") == {}, call


def test_every_file_is_in_one_of_the_places_and_a_repeat_brings_all_to_the_new_one():
    prepared = CrashableStorage()
    for path, content in FILES.items():
        prepared.create(f"old/{path}", content)
    calm = prepared.reopened()
    move(calm)
    for call in calm.log:
        for kind in kinds_for(call.operation):
            where = f"{kind} at {call}"
            storage = prepared.reopened(Fault(call.number, kind))
            with pytest.raises((PowerCut, UnavailableError)):
                move(storage)
            found = storage.reopened()
            old, new = inside(found, "old"), inside(found, "new")
            for path, content in FILES.items():
                assert content in (old.get(path), new.get(path)), f"{where}: {path}"
            move(found)
            assert inside(found, "new") == FILES, where
            assert found.files("old") == {}, where

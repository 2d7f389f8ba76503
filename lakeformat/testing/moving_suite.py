# SPDX-License-Identifier: Apache-2.0
"""The contract of storages that move a directory in one step, as tests."""

from __future__ import annotations

from typing import Any

import pytest

from lakeformat.errors import AlreadyExistsError, NotFoundError
from lakeformat.storage import LockedCreation, ProcessLock
from lakeformat.storage.move_directory import mover
from lakeformat.testing.storage_suite import StorageSuite

__all__ = ["MovingStorageSuite"]


class MovingStorageSuite(StorageSuite):
    """The tests of a storage with ``rename_directory``. Derive your class from this one, not from
    ``StorageSuite``.
    """

    def test_a_lock_around_it_makes_no_difference(self, storage: Any) -> None:
        locked = LockedCreation(LockedCreation(storage, ProcessLock(), "a"), ProcessLock(), "b")
        assert mover(locked) is mover(storage) is storage

    def test_a_directory_moves_whole(self, storage: Any, root: str) -> None:
        storage.overwrite(f"{root}/old/a/f", b"f")
        storage.overwrite(f"{root}/old/g", b"g")
        storage.make_directory(f"{root}/old/empty")
        storage.create(f"{root}/older", b"stays")
        storage.rename_directory(f"{root}/old", f"{root}/made/new")
        assert not storage.directory_exists(f"{root}/old")
        assert storage.read(f"{root}/made/new/a/f") == b"f"
        assert storage.read(f"{root}/made/new/g") == b"g"
        assert storage.directory_exists(f"{root}/made/new/empty")
        assert [info.name for info in storage.list(root)] == ["made", "older"]

    def test_a_directory_that_is_missing_is_not_found(self, storage: Any, root: str) -> None:
        storage.create(f"{root}/f", b"x")
        for missing in (f"{root}/no", f"{root}/f"):
            with pytest.raises(NotFoundError, match=missing):
                storage.rename_directory(missing, f"{root}/new")
        assert [info.name for info in storage.list(root)] == ["f"]

    def test_a_directory_is_not_moved_onto_a_taken_name(self, storage: Any, root: str) -> None:
        storage.overwrite(f"{root}/old/f", b"ours")
        storage.overwrite(f"{root}/directory/f", b"theirs")
        storage.create(f"{root}/file", b"theirs")
        for taken in ("directory", "file"):
            with pytest.raises(AlreadyExistsError, match="taken"):
                storage.rename_directory(f"{root}/old", f"{root}/{taken}")
        names = [info.name for info in storage.list(root)]
        assert names == ["directory", "file", "old"]
        assert [info.name for info in storage.list(f"{root}/directory")] == ["f"]
        assert storage.read(f"{root}/directory/f") == b"theirs"

    def test_a_publication_does_not_bring_back_what_was_moved_away(
        self, storage: Any, root: str
    ) -> None:
        storage.make_directory(f"{root}/t")
        assert storage.create(f"{root}/t/snapshot/snapshot-1", b"1")
        storage.rename_directory(f"{root}/t", f"{root}/u")
        with pytest.raises(NotFoundError, match="renamed or dropped meanwhile"):
            storage.create(f"{root}/t/snapshot/snapshot-2", b"2")
        assert [info.name for info in storage.list(root)] == ["u"]

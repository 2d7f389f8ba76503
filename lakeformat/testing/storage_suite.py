# SPDX-License-Identifier: Apache-2.0
"""The contract of ``Storage`` as tests: derive a class to test a new backend.

class TestMyStorage(StorageSuite):
    @pytest.fixture
    def storage(self): return MyStorage()

    @pytest.fixture
    def root(self, tmp_path): return f"{tmp_path}"
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import AlreadyExistsError, NotFoundError
from lakeformat.storage import Storage, open_storage
from lakeformat.storage.base import TooLargeError
from lakeformat.storage.empty_directory import remove_empty_directory

__all__ = ["StorageSuite"]


class StorageSuite:
    """The tests of one storage. Derive ``Test<Name>Storage`` from it, with the fixtures ``storage``
    and ``root``.
    """

    addressable: ClassVar[bool] = True
    """Set this to False if ``open_storage`` cannot open an address of the storage."""
    racers: ClassVar[int] = 8

    @pytest.fixture
    def storage(self) -> Storage:
        pytest.fail("define a fixture `storage` in the subclass: the storage to test")

    @pytest.fixture
    def root(self) -> str:
        pytest.fail("define a fixture `root` in the subclass: a free path in the storage")

    # Addresses and names

    def test_an_address_leads_back(self, storage: Storage, root: str) -> None:
        path = f"{root}/dt=2024-01-01/100% of a #b"
        storage.overwrite(path, b"x")
        assert storage.uri(path).startswith(f"{storage.scheme}:")
        if self.addressable:
            found, inside = open_storage(storage.uri(path))
            assert found.read(inside) == b"x"

    @pytest.mark.parametrize("name", ["a b", "k=v", "50%", "%20", "#?&", "ü", ".hidden", "a:b"])
    def test_a_name_is_kept_as_it_is(self, storage: Storage, root: str, name: str) -> None:
        storage.overwrite(f"{root}/{name}/{name}", b"x")
        assert [info.name for info in storage.list(root)] == [name]
        assert storage.read(storage.list(f"{root}/{name}")[0].path) == b"x"

    # Reading

    def test_reading_gives_the_whole_content(self, storage: Storage, root: str) -> None:
        content = bytes(range(256)) * 9000
        storage.create(f"{root}/f", content)
        assert storage.read(f"{root}/f") == content

    def test_reading_stops_at_the_limit(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/f", b"12345")
        assert storage.read(f"{root}/f", 5) == b"12345"
        with pytest.raises(TooLargeError, match=r"has 5 bytes, .* at most 4"):
            storage.read(f"{root}/f", 4)

    def test_an_input_stream_seeks(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/f", b"0123456789")
        with storage.open_input(f"{root}/f") as stream:
            stream.seek(7)
            assert (stream.tell(), stream.read(2), stream.read()) == (7, b"78", b"9")

    def test_reading_what_is_missing_is_not_found(self, storage: Storage, root: str) -> None:
        storage.overwrite(f"{root}/directory/f", b"x")
        for path in (f"{root}/no", f"{root}/no/no", f"{root}/directory", f"{root}/directory/f/no"):
            with pytest.raises(NotFoundError, match=re.escape(path)):
                storage.read(path)
            with pytest.raises(NotFoundError, match=re.escape(path)):
                storage.open_input(path)

    # Writing a stream

    def test_a_closed_output_is_there(self, storage: Storage, root: str) -> None:
        with storage.open_output(f"{root}/new/deep/f") as stream:
            for _ in range(3):
                stream.write(b"abc" * 100_000)
            assert stream.tell() == 900_000
        assert storage.read(f"{root}/new/deep/f") == b"abc" * 300_000

    def test_an_output_may_be_empty(self, storage: Storage, root: str) -> None:
        with storage.open_output(f"{root}/f"):
            pass
        assert storage.read(f"{root}/f") == b""

    def test_arrow_writes_and_reads_parquet(self, storage: Storage, root: str) -> None:
        table = pa.table({"id": list(range(1000))})
        with storage.open_output(f"{root}/t.parquet") as stream:
            pq.write_table(table, stream)
        with storage.open_input(f"{root}/t.parquet") as stream:
            assert pq.read_table(stream).equals(table)

    def test_an_output_refuses_a_taken_name(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/taken", b"old")

        def write() -> None:
            with storage.open_output(f"{root}/taken") as stream:
                stream.write(b"new")

        with pytest.raises(AlreadyExistsError, match="taken"):
            write()
        assert storage.read(f"{root}/taken") == b"old"

    def test_an_exception_leaves_the_output_context(self, storage: Storage, root: str) -> None:
        def fail() -> None:
            with storage.open_output(f"{root}/f") as stream:
                stream.write(b"half")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with storage.open_output(f"{root}/g") as stream:
            stream.write(b"whole")
        assert storage.read(f"{root}/g") == b"whole"

    # Publishing

    def test_the_first_create_wins(self, storage: Storage, root: str) -> None:
        storage.make_directory(root)
        assert storage.create(f"{root}/s/1", b"first") is True
        assert storage.create(f"{root}/s/1", b"second") is False
        assert storage.read(f"{root}/s/1") == b"first"

    def test_create_leaves_nothing_else_behind(self, storage: Storage, root: str) -> None:
        storage.make_directory(root)
        storage.create(f"{root}/s/1", b"first")
        storage.create(f"{root}/s/1", b"second")
        assert [info.name for info in storage.list(f"{root}/s")] == ["1"]

    def test_a_deleted_name_can_be_created_again(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/1", b"first")
        storage.delete(f"{root}/1")
        assert storage.create(f"{root}/1", b"") is True
        assert storage.read(f"{root}/1") == b""

    def test_of_many_racing_creates_one_wins(self, storage: Storage, root: str) -> None:
        start = Barrier(self.racers)

        def race(racer: int) -> set[int]:
            start.wait(timeout=30)
            content = b"%d" % racer * 1000
            return {turn for turn in range(10) if storage.create(f"{root}/{turn}", content)}

        with ThreadPoolExecutor(self.racers) as threads:
            won = list(threads.map(race, range(self.racers)))
        assert sorted(turn for turns in won for turn in turns) == list(range(10))
        for racer, turns in enumerate(won):
            for turn in turns:
                assert storage.read(f"{root}/{turn}") == b"%d" % racer * 1000

    # Overwriting

    def test_overwrite_writes_a_new_file(self, storage: Storage, root: str) -> None:
        storage.overwrite(f"{root}/new/hint", b"1")
        assert storage.read(f"{root}/new/hint") == b"1"

    def test_overwrite_replaces_all_of_the_old(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/hint", b"long content")
        storage.overwrite(f"{root}/hint", b"2")
        assert storage.read(f"{root}/hint") == b"2"
        assert [info.name for info in storage.list(root)] == ["hint"]

    # Looking

    def test_only_a_file_exists(self, storage: Storage, root: str) -> None:
        storage.overwrite(f"{root}/a/f", b"")
        paths = [f"{root}/a/f", f"{root}/a", f"{root}/no", f"{root}/a/f/no"]
        assert [storage.exists(path) for path in paths] == [True, False, False, False]
        assert [storage.directory_exists(path) for path in paths] == [False, True, False, False]

    def test_a_listing_has_the_direct_children(self, storage: Storage, root: str) -> None:
        for path, content in {"b": b"12", "a/x/y": b"", "c": b"", "a-b": b"1"}.items():
            storage.overwrite(f"{root}/{path}", content)
        found = [
            (info.path, info.name, info.is_directory, info.size) for info in storage.list(root)
        ]
        assert found == [
            (f"{root}/a", "a", True, 0),
            (f"{root}/a-b", "a-b", False, 1),
            (f"{root}/b", "b", False, 2),
            (f"{root}/c", "c", False, 0),
        ]

    def test_a_missing_directory_lists_empty(self, storage: Storage, root: str) -> None:
        assert storage.list(f"{root}/no/no") == []

    def test_a_file_knows_when_it_changed(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/f", b"")
        age_millis = time.time() * 1000 - storage.list(root)[0].modified_millis
        assert -60_000 < age_millis < 60_000

    # Directories

    def test_a_made_directory_exists_while_empty(self, storage: Storage, root: str) -> None:
        storage.make_directory(f"{root}/db/t")
        storage.make_directory(f"{root}/db/t")
        assert storage.directory_exists(f"{root}/db/t")
        assert [(info.name, info.is_directory) for info in storage.list(f"{root}/db")] == [
            ("t", True)
        ]
        assert storage.list(f"{root}/db/t") == []

    def test_the_parents_of_a_made_directory_stay(self, storage: Storage, root: str) -> None:
        storage.make_directory(f"{root}/db/t")
        storage.delete_directory(f"{root}/db/t")
        assert storage.directory_exists(f"{root}/db")

    # Removing

    def test_a_deleted_file_is_gone(self, storage: Storage, root: str) -> None:
        storage.create(f"{root}/f", b"x")
        storage.create(f"{root}/other", b"x")
        storage.delete(f"{root}/f")
        assert not storage.exists(f"{root}/f")
        assert storage.exists(f"{root}/other")

    def test_deleting_nothing_is_fine(self, storage: Storage, root: str) -> None:
        storage.delete(f"{root}/no")
        storage.delete(f"{root}/no/no")
        storage.delete_directory(f"{root}/no")

    def test_a_deleted_directory_takes_everything(self, storage: Storage, root: str) -> None:
        storage.overwrite(f"{root}/t/a/f", b"x")
        storage.make_directory(f"{root}/t/empty")
        storage.overwrite(f"{root}/t2/f", b"x")
        storage.delete_directory(f"{root}/t")
        assert not storage.directory_exists(f"{root}/t")
        assert not storage.exists(f"{root}/t/a/f")
        assert storage.exists(f"{root}/t2/f")

    def test_a_directory_is_removed_as_empty_only_if_it_is(
        self, storage: Storage, root: str
    ) -> None:
        storage.make_directory(f"{root}/db")
        storage.overwrite(f"{root}/db/f", b"x")
        assert remove_empty_directory(storage, f"{root}/db") is False
        assert storage.exists(f"{root}/db/f")
        storage.delete(f"{root}/db/f")
        assert remove_empty_directory(storage, f"{root}/db") is True
        assert not storage.directory_exists(f"{root}/db")
        assert remove_empty_directory(storage, f"{root}/db") is True

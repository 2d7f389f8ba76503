"""The memory storage beyond the contract."""

from __future__ import annotations

from lakeformat.storage import MemoryStorage


def test_times_come_from_the_clock():
    times = iter([1000, 2000])
    storage = MemoryStorage(clock=lambda: next(times))
    storage.create("d/f", b"")
    assert storage.list("d")[0].modified_millis == 1000
    storage.overwrite("d/f", b"")
    assert storage.list("d")[0].modified_millis == 2000


def test_an_output_is_invisible_until_it_is_closed():
    storage = MemoryStorage()
    with storage.open_output("f") as stream:
        stream.write(b"x")
        assert not storage.exists("f")
    assert storage.exists("f")


def test_the_root_is_the_empty_path():
    storage = MemoryStorage()
    assert not storage.directory_exists("")
    storage.create("/a/f", b"x")
    assert storage.read("a/f") == b"x"
    assert [info.path for info in storage.list("")] == ["/a"]
    storage.delete_directory("/a")
    assert not storage.directory_exists("")


def test_a_copy_goes_its_own_way():
    storage = MemoryStorage("m", clock=lambda: 5)
    storage.create("d/f", b"x")
    storage.make_directory("empty")
    twin = storage.copy()
    storage.delete_directory("d")
    assert twin.files() == {"d/f": b"x"}
    assert twin.directory_exists("empty")
    assert twin.list("d")[0].modified_millis == 5


def test_files_of_one_directory():
    storage = MemoryStorage()
    for path in ("d/b", "d/a/x", "da"):
        storage.create(path, path.encode())
    assert storage.files("d") == {"d/a/x": b"d/a/x", "d/b": b"d/b"}


def test_an_address_quotes_what_a_uri_cannot_hold():
    assert MemoryStorage("a/b").uri("dt=1/50% #") == "memory://a%2Fb/dt=1/50%25%20%23"

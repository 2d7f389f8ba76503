"""HDFS keeps the promises of every storage, on a stand-in with Arrow's clobbering ``move``."""

from __future__ import annotations

import uuid

import pytest
from pyarrow.fs import PyFileSystem

from lakeformat.errors import AlreadyExistsError, UnavailableError, UnsupportedError
from lakeformat.storage import LockedCreation, ProcessLock, creation_proof, resolve
from lakeformat.storage.rename import RenameStorage
from lakeformat.testing.moving_suite import MovingStorageSuite
from tests.conformance.hadoop_like import HadoopLike


@pytest.fixture
def hdfs() -> HadoopLike:
    return HadoopLike()


@pytest.fixture
def storage(hdfs) -> RenameStorage:
    return RenameStorage(lambda: PyFileSystem(hdfs), f"hdfs://{uuid.uuid4()}:8020")


class TestRenameStorage(MovingStorageSuite):
    addressable = False

    @pytest.fixture
    def storage(self, storage):
        return storage

    @pytest.fixture
    def root(self):
        return "/warehouse"


def test_the_stand_in_replaces_a_file_like_arrow_does(hdfs):
    """The reason for the detour over the directory."""
    hdfs.files.update({"/mine": b"mine", "/theirs": b"theirs"})
    with pytest.raises(OSError, match="returned false"):
        hdfs.rename("/mine", "/theirs")
    hdfs.move("/mine", "/theirs")
    assert hdfs.files == {"/theirs": b"mine"}


def test_a_name_taken_between_the_look_and_the_move_is_kept(storage, hdfs):
    storage.make_directory("/t")
    assert storage.create("/t/snapshot/snapshot-1", b"first")

    def another_writer_first(source: str, target: str) -> None:
        hdfs.files["/t/snapshot/snapshot-2"] = b"another's"
        HadoopLike.move(hdfs, source, target)

    hdfs.move = another_writer_first
    assert storage.create("/t/snapshot/snapshot-2", b"ours") is False
    assert hdfs.files["/t/snapshot/snapshot-2"] == b"another's"
    assert [info.name for info in storage.list("/t/snapshot")] == ["snapshot-1", "snapshot-2"]


def test_a_directory_is_not_moved_into_one_made_since_the_look(storage, hdfs):
    storage.make_directory("/shop.db/orders")
    storage.create("/shop.db/orders/schema/schema-0", b"ours")

    def another_writer_first(source: str, target: str) -> None:
        hdfs.move = hdfs_move
        storage.overwrite("/shop.db/new/schema/schema-0", b"another's")
        hdfs_move(source, target)

    hdfs_move, hdfs.move = hdfs.move, another_writer_first
    with pytest.raises(AlreadyExistsError, match="the name is taken"):
        storage.rename_directory("/shop.db/orders", "/shop.db/new")
    assert hdfs.files == {
        "/shop.db/orders/schema/schema-0": b"ours",
        "/shop.db/new/schema/schema-0": b"another's",
    }


def test_a_lost_answer_leaves_the_outcome_open(storage, hdfs):
    storage.create("/t/1", b"x")
    hdfs.lost_answers = 1
    with pytest.raises(UnavailableError, match="the connection broke"):
        storage.create("/t/2", b"ours")
    assert storage.read("/t/2") == b"ours"


def test_a_rename_that_replaces_is_refused_unless_a_lock_decides(storage, hdfs):
    hdfs.replaces = True
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=r"replaces an existing.*unsafe\.single-writer"):
            storage.create("/t/1", b"x")
    assert hdfs.files == {}
    locked = LockedCreation(storage, ProcessLock(), "shop.orders")
    assert [locked.create("/t/1", b"x"), locked.create("/t/1", b"y")] == [True, False]


def test_a_reader_never_meets_half_of_a_file_that_is_overwritten(storage, hdfs):
    """Under a lock a snapshot is published like that, and a hint always is."""
    seen = []

    def watching(path: str, metadata: object):
        stream = HadoopLike.open_output_stream(hdfs, path, metadata)
        seen.append(hdfs.files.get("/t/1"))
        return stream

    hdfs.open_output_stream = watching
    storage.overwrite("/t/1", b"first")
    storage.overwrite("/t/1", b"second")
    assert seen == [None, b"first"]
    assert hdfs.files == {"/t/1": b"second"}


def test_a_failed_overwrite_leaves_the_old_content_and_nothing_beside_it(storage, hdfs):
    storage.overwrite("/t/1", b"first")
    hdfs.move = failing
    with pytest.raises(UnavailableError, match=r"Cannot write hdfs://.*no quorum"):
        storage.overwrite("/t/1", b"second")
    assert hdfs.files == {"/t/1": b"first"}


def test_a_directory_is_not_overwritten(storage, hdfs):
    storage.overwrite("/t/1", b"x")
    with pytest.raises(AlreadyExistsError, match="is a directory"):
        storage.overwrite("/t", b"y")
    assert hdfs.files == {"/t/1": b"x"}


@pytest.mark.parametrize(
    ("proven", "asked", "is_asked_again"),
    [
        ("hdfs://a:8020/t/1", "hdfs://a:8020/other/1", False),
        ("hdfs://a:8020/t/1", "hdfs://b:8020/t/1", True),
        ("viewfs://a/t/1", "viewfs://b/t/1", True),
        ("viewfs://a/t/1", "viewfs://a/t/2", False),
        ("viewfs://a/mounted/1", "viewfs://a/mounted-elsewhere/1", True),
    ],
)
def test_a_rename_is_proven_for_each_system_that_may_be_another(
    monkeypatch, proven, asked, is_asked_again
):
    monkeypatch.setattr(creation_proof, "_verdicts", {})
    good, bad = HadoopLike(), HadoopLike()
    bad.replaces = True
    assert create_at(proven, good) is True
    if not is_asked_again:
        assert create_at(asked, bad) is True  # believed
        return
    with pytest.raises(UnsupportedError, match="replaces an existing"):
        create_at(asked, bad)


def test_a_cluster_that_does_not_answer_is_not_an_empty_one(storage, hdfs):
    storage.create("/t/1", b"x")
    hdfs.is_down = True
    for ask in (storage.exists, storage.list, storage.directory_exists, storage.read):
        with pytest.raises(UnavailableError, match="does not answer"):
            ask("/t/1")


def test_a_file_elsewhere_on_the_cluster_shares_the_connection(storage):
    assert resolve(storage.uri("/elsewhere/f"), storage) == (storage, "/elsewhere/f")


def create_at(address: str, system: HadoopLike) -> bool:
    scheme, _, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    storage = RenameStorage(lambda: PyFileSystem(system), f"{scheme}://{authority}")
    return storage.create(slash + path, b"x")


def failing(source: str, target: str) -> None:
    raise OSError("no quorum")

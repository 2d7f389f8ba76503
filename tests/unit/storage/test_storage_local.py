"""The steps of the local storage: the order of its syncs, its clean-up, its messages."""

from __future__ import annotations

import errno
import os
import pickle
import stat

import pyarrow as pa
import pytest

from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.storage import LocalStorage


@pytest.fixture
def storage():
    return LocalStorage(ids=lambda: "id")


def refuse(monkeypatch, function, number):
    def refusing(*_args, **_named):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, refusing)


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """The file system calls that matter for durability, in the order they are made."""
    log = []
    fsync, link, replace, unlink = os.fsync, os.link, os.replace, os.unlink

    def name(path):
        return os.path.relpath(path, tmp_path)

    def record(function, *words):
        def recording(*paths):
            log.append(" ".join([*words, *(name(path) for path in paths)]))
            return function(*paths)

        return recording

    def recording_fsync(descriptor):
        log.append(f"sync {name(os.readlink(f'/proc/self/fd/{descriptor}'))}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "link", record(link, "link"))
    monkeypatch.setattr(os, "replace", record(replace, "replace"))
    monkeypatch.setattr(os, "unlink", record(unlink, "unlink"))
    return log


needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="runs where /proc names open files: Linux"
)


@needs_proc
def test_create_syncs_content_then_links_then_syncs_the_directory(storage, tmp_path, steps):
    storage.create(f"{tmp_path}/snapshot-1", b"x")
    assert steps == [
        "sync .snapshot-1.id.tmp",
        "link .snapshot-1.id.tmp snapshot-1",
        "unlink .snapshot-1.id.tmp",
        "sync .",
    ]


@needs_proc
def test_overwrite_syncs_content_then_replaces_then_syncs_the_directory(storage, tmp_path, steps):
    storage.overwrite(f"{tmp_path}/LATEST", b"1")
    assert steps == ["sync .LATEST.id.tmp", "replace .LATEST.id.tmp LATEST", "sync ."]


@needs_proc
def test_new_parents_and_an_output_are_synced(storage, tmp_path, steps):
    with storage.open_output(f"{tmp_path}/a/b/f"):
        pass
    assert steps == ["sync .", "sync a", "sync a/b/f", "sync a/b"]


@needs_proc
def test_a_deleted_directory_is_synced_in_its_parent(storage, tmp_path, steps):
    (tmp_path / "t").mkdir()
    storage.delete_directory(f"{tmp_path}/t")
    assert steps == ["sync ."]


def test_a_lost_race_is_noticed_at_the_link(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    (tmp_path / "f").write_bytes(b"theirs")
    assert storage.create(f"{tmp_path}/f", b"ours") is False
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"theirs"


def test_a_link_that_was_made_twice_by_the_server_is_a_win(storage, tmp_path, monkeypatch):
    link = os.link

    def repeated(source, target):
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    assert storage.create(f"{tmp_path}/f", b"ours") is True


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_publication_is_refused(storage, tmp_path, monkeypatch, number):
    refuse(monkeypatch, "link", number)
    with pytest.raises(UnsupportedError, match=r"hard links.*Move the warehouse"):
        storage.create(f"{tmp_path}/f", b"x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "disk is full: free some space"),
        (errno.EDQUOT, "quota"),
        (
            errno.EFBIG,
            r"lower the table's target file size \('target-file-size'; of an Iceberg table",
        ),
        (errno.EROFS, "read-only: remount"),
        (errno.EACCES, f"Give user id {os.geteuid()} the permission"),
        (errno.EIO, "Retry once the file system answers"),
    ],
)
@pytest.mark.parametrize("write", ["create", "overwrite"])
def test_a_refusing_disk_is_named_with_a_remedy(
    storage, tmp_path, monkeypatch, write, number, advice
):
    refuse(monkeypatch, "fsync", number)
    with pytest.raises(UnavailableError, match=f"{tmp_path}/f: .*{advice}"):
        getattr(storage, write)(f"{tmp_path}/f", b"x")
    assert os.listdir(tmp_path) == []


def test_only_before_the_link_is_it_certain_that_nothing_was_published(
    storage, tmp_path, monkeypatch
):
    link = os.link

    def linked_and_then_refused(source, target):
        link(source, target)
        refuse(monkeypatch, "fsync", errno.EIO)

    monkeypatch.setattr(os, "link", linked_and_then_refused)
    with pytest.raises(UnavailableError, match="publish") as late:
        storage.create(f"{tmp_path}/f", b"x")
    with pytest.raises(UnavailableError, match="publish") as early:
        storage.create(f"{tmp_path}/g", b"x")
    assert (late.value.nothing_was_written, early.value.nothing_was_written) == (False, True)
    assert os.listdir(tmp_path) == ["f"]


def test_an_output_that_cannot_be_synced_is_removed(storage, tmp_path, monkeypatch):
    refuse(monkeypatch, "fsync", errno.ENOSPC)
    with (
        pytest.raises(UnavailableError, match=f"finish {tmp_path}/f.*disk is full"),
        storage.open_output(f"{tmp_path}/f") as stream,
    ):
        stream.write(b"x")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="runs where /dev/full is: Linux")
def test_a_full_disk_is_noticed_while_writing(storage, tmp_path, monkeypatch):
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(os, "open", lambda *_: os.dup(full))
    (tmp_path / "f").symlink_to("/dev/full")
    with (
        pytest.raises(UnavailableError, match=f"write {tmp_path}/f.*disk is full"),
        storage.open_output(f"{tmp_path}/f") as stream,
    ):
        stream.write(b"x" * 100_000)
    os.close(full)


@pytest.mark.parametrize("error", [ZeroDivisionError(), FileNotFoundError(2, "mine"), SystemExit()])
def test_the_error_of_the_writer_stays_as_it_is(storage, tmp_path, error):
    def fail():
        with storage.open_output(f"{tmp_path}/f") as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    assert os.listdir(tmp_path) == []


def test_a_refused_output_keeps_what_is_there(storage, tmp_path):
    (tmp_path / "f").write_bytes(b"theirs")
    with (
        pytest.raises(AlreadyExistsError, match=f"{tmp_path}/f"),
        storage.open_output(f"{tmp_path}/f"),
    ):
        pass
    assert (tmp_path / "f").read_bytes() == b"theirs"


@pytest.mark.parametrize("question", ["exists", "directory_exists", "list", "read"])
def test_a_directory_that_may_not_be_read_is_not_taken_for_missing(
    storage, tmp_path, monkeypatch, question
):
    refuse(monkeypatch, "stat", errno.EACCES)
    refuse(monkeypatch, "scandir", errno.EACCES)
    monkeypatch.setattr("builtins.open", os.stat)
    with pytest.raises(UnavailableError, match="permission"):
        getattr(storage, question)(f"{tmp_path}/f")


def test_a_file_in_the_way_of_a_directory_is_named(storage, tmp_path):
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(UnavailableError, match="A file is in the place of a directory"):
        storage.create(f"{tmp_path}/f/g/h", b"x")


def test_a_directory_that_vanishes_under_a_writer_is_not_not_found(storage, tmp_path, monkeypatch):
    refuse(monkeypatch, "link", errno.ENOENT)
    with pytest.raises(UnavailableError, match="A parent directory is missing"):
        storage.create(f"{tmp_path}/f", b"x")


def test_a_file_system_that_cannot_sync_directories_is_good_enough(storage, tmp_path, monkeypatch):
    fsync = os.fsync

    def only_files(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    assert storage.create(f"{tmp_path}/d/f", b"x")


def test_a_linked_directory_is_not_deleted_through_the_link(storage, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    storage.delete_directory(f"{tmp_path}/link")
    assert (tmp_path / "real/f").exists()
    assert not (tmp_path / "link").is_symlink()


def test_a_published_file_follows_the_umask(storage, tmp_path):
    umask = os.umask(0o027)
    try:
        storage.create(f"{tmp_path}/f", b"x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_dangling_link_is_not_listed(storage, tmp_path):
    (tmp_path / "f").symlink_to(tmp_path / "no")
    assert storage.list(str(tmp_path)) == []


def test_a_missing_file_is_not_found_by_name(storage, tmp_path):
    with pytest.raises(NotFoundError, match=f"Cannot read {tmp_path}/f: no such file"):
        storage.read(f"{tmp_path}/f")


def test_a_relative_path_is_refused(storage):
    with pytest.raises(InvalidRequestError, match="absolute"):
        storage.create("relative/f", b"x")


def test_a_storage_travels_to_other_processes():
    assert isinstance(pickle.loads(pickle.dumps(LocalStorage())), LocalStorage)


def test_every_error_is_ours(storage, tmp_path):
    with pytest.raises(LakeError, match="too long"):
        storage.create(f"{tmp_path}/{'x' * 300}", b"")


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_disk_that_fills_up_while_rows_are_written_is_said_by_path_and_leaves_nothing(
    tmp_path, monkeypatch, file_format
):
    """Arrow raises the disk's error inside its own writer, not in a call of the storage."""
    import lakeformat as lake

    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"file.format": file_format}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)

    def full(self, rows):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = {"parquet": "ParquetFileWriter", "orc": "OrcFileWriter", "avro": "AvroFileWriter"}
    monkeypatch.setattr(f"lakeformat.files.{file_format}.writer.{writer[file_format]}.write", full)
    with pytest.raises(UnavailableError, match=r"bucket-0/data-.*(space|full)"):
        table.write(pa.table({"id": [1]}))
    assert list(tmp_path.rglob("data-*")) == []


def test_a_path_that_is_too_long_is_refused_by_name(tmp_path):
    storage = LocalStorage().within(str(tmp_path))
    path = f"{tmp_path}/p={'x' * 300}/f"
    too_long = pytest.raises(UnavailableError, match="The path is too long for this file system")
    with too_long, storage.open_output(path):
        pytest.fail("the file cannot be there")
    assert [*tmp_path.iterdir()] == []

"""No storage removes everything it has: not by a missing name, nor by a slash too few."""

from __future__ import annotations

import shutil
import uuid

import pytest
from pyarrow.fs import PyFileSystem

from lakeformat.errors import InvalidRequestError
from lakeformat.storage import (
    LocalStorage,
    LockedCreation,
    MemoryStorage,
    ProcessLock,
    open_storage,
)
from lakeformat.storage.rename import RenameStorage
from lakeformat.testing import CrashableStorage
from tests.conformance.faulty_bucket import faulty_bucket
from tests.conformance.hadoop_like import HadoopLike


def local(monkeypatch):
    def never(path: str) -> None:
        raise AssertionError(f"{path} would be gone")

    monkeypatch.setattr(shutil, "rmtree", never)
    yield LocalStorage()


def memory(_):
    yield MemoryStorage()


def crashable(_):
    yield CrashableStorage()


def locked(_):
    yield LockedCreation(MemoryStorage(), ProcessLock(), "shop.orders")


def hdfs(_):
    system = HadoopLike()
    yield RenameStorage(lambda: PyFileSystem(system), f"hdfs://{uuid.uuid4()}")


def bucket(_):
    with faulty_bucket() as running:
        options = {
            "s3.endpoint": running.endpoint,
            "s3.access-key": "key",
            "s3.secret-key": "secret",
        }
        yield open_storage("s3://lake", options)[0]


@pytest.mark.parametrize("kind", [local, memory, crashable, locked, hdfs, bucket])
@pytest.mark.parametrize("root", ["", "/", "//", "/.", "/a/.."])
def test_the_root_of_a_storage_is_not_removed(kind, root, monkeypatch):
    opened = kind(monkeypatch)
    storage = next(opened)
    try:
        if kind is not local:
            storage.overwrite("/a/f", b"x")
        with pytest.raises(InvalidRequestError, match="it is the root of its storage"):
            storage.delete_directory(root)
        assert kind is local or storage.read("/a/f") == b"x"
    finally:
        opened.close()

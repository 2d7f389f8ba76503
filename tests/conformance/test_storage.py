"""Every storage keeps the same promises, and the local one keeps them between processes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
import uuid
from pathlib import Path

import pytest

from lakeformat.errors import UnsupportedError
from lakeformat.storage import (
    LocalStorage,
    LockedCreation,
    MemoryStorage,
    ProcessLock,
    open_storage,
)
from lakeformat.testing import CrashableStorage
from lakeformat.testing.moving_suite import MovingStorageSuite
from lakeformat.testing.storage_suite import StorageSuite
from tests.conformance.processes import processes


class TestLocalStorage(MovingStorageSuite):
    @pytest.fixture
    def storage(self):
        return LocalStorage()

    @pytest.fixture
    def root(self, tmp_path):
        return f"{tmp_path}/warehouse"


class TestMemoryStorage(MovingStorageSuite):
    @pytest.fixture
    def storage(self):
        storage, _ = open_storage(f"memory://{uuid.uuid4()}")
        yield storage
        for info in storage.list(""):
            storage.delete(info.path)
            storage.delete_directory(info.path)

    @pytest.fixture(params=["", "warehouse"])
    def root(self, request):
        return request.param


class OverwritingStorage(MemoryStorage):
    """One that cannot decide a race by itself."""

    def create(self, path, content):
        raise UnsupportedError("no conditional write")


class TestLockedCreation(StorageSuite):
    addressable = False

    @pytest.fixture
    def storage(self):
        return LockedCreation(OverwritingStorage(), ProcessLock(), "shop.orders")

    @pytest.fixture
    def root(self):
        return "warehouse"


class TestCrashableStorage(StorageSuite):
    addressable = False

    @pytest.fixture
    def storage(self):
        return CrashableStorage()

    @pytest.fixture
    def root(self):
        return "warehouse"


RACE = """
import json, os, sys, time
from lakeformat.storage import LocalStorage
root, racer = sys.argv[1:]
storage = LocalStorage()
print("ready", flush=True)
sys.stdin.readline()
content = racer.encode() * 5000
print(json.dumps([n for n in range(200) if storage.create(f"{root}/snapshot-{n}", content)]))
"""


def test_of_many_racing_processes_one_publishes_each_name(tmp_path):
    racers = [str(racer) for racer in range(4)]
    with processes([[RACE, f"{tmp_path}/s", racer] for racer in racers]) as running:
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        won = [json.loads(process.stdout.readline()) for process in running]
    assert sorted(n for names in won for n in names) == list(range(200))
    for racer, names in zip(racers, won, strict=True):
        for n in names:
            assert (tmp_path / f"s/snapshot-{n}").read_text() == racer * 5000
    assert len(os.listdir(tmp_path / "s")) == 200


PUBLISH = """
import hashlib, sys
from lakeformat.storage import LocalStorage
root = sys.argv[1]
storage = LocalStorage()
for n in range(1_000_000):
    body = b"%09d" % n * 60_000
    with storage.open_output(f"{root}/data/{n}") as stream:
        for start in range(0, len(body), 50_000):
            stream.write(body[start : start + 50_000])
    digest = hashlib.sha256(body).hexdigest().encode()
    assert storage.create(f"{root}/snapshot/{n}", digest * 2000)
    if n == 0:
        print("ready", flush=True)
"""


def test_a_killed_process_leaves_nothing_torn_that_was_published(tmp_path):
    roots = [f"{tmp_path}/{n}" for n in range(4)]
    with processes([[PUBLISH, root] for root in roots]) as running:
        for turn, process in enumerate(running):
            time.sleep(0.05 + 0.037 * turn)
            process.send_signal(signal.SIGKILL)
            process.wait()
    published = 0
    for root in roots:
        for info in LocalStorage().list(f"{root}/snapshot"):
            if info.name.startswith("."):
                continue
            digest = hashlib.sha256(Path(root, "data", info.name).read_bytes()).hexdigest()
            assert Path(info.path).read_text() == digest * 2000
            published += 1
    assert published >= len(roots)


def test_a_reader_never_meets_half_of_a_published_file(tmp_path):
    with processes([[PUBLISH, str(tmp_path)]]):
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            for path in Path(tmp_path, "snapshot").glob("[0-9]*"):
                assert len(path.read_bytes()) == 64 * 2000

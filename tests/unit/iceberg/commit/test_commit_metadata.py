"""A commit publishes one change on the newest metadata, however many writers there are."""

from __future__ import annotations

import itertools
import json
import logging
from contextlib import suppress

import pytest

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import FixedPointer
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.storage import NO_ROOTS, MemoryStorage
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.path_table import ROOT, appended, handle_on, names, path_table

METADATA = f"{ROOT}/metadata"


def append(name: str, meanwhile=lambda: None):
    """A change that appends a snapshot, after something that happens during its first attempt."""
    pending = [meanwhile]

    def change(loaded):
        while pending:
            pending.pop()()
        return appended(loaded.metadata, name)

    return change


def files(storage: MemoryStorage) -> list[str]:
    return [info.name for info in storage.list(METADATA)]


def test_a_commit_publishes_the_next_number_and_its_hint():
    storage = MemoryStorage("t")
    result = commit_metadata(path_table(storage), append("a"))
    assert (result.is_published, result.attempts) == (True, 1)
    assert files(storage) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    assert storage.read(f"{METADATA}/version-hint.text") == b"2"
    metadata = handle_on(storage).load().metadata
    assert metadata == result.loaded.metadata
    assert metadata.last_updated_ms == NOW_MILLIS
    [previous] = metadata.metadata_log
    assert previous.metadata_file == f"{storage.uri(ROOT)}/metadata/v1.metadata.json"


def test_without_a_change_nothing_is_published():
    storage = MemoryStorage("t")
    result = commit_metadata(path_table(storage), lambda loaded: None)
    assert not result.is_published
    assert files(storage) == ["v1.metadata.json"]


def test_a_commit_that_loses_is_made_again_on_the_metadata_of_the_winner():
    storage = MemoryStorage("t")
    handle = path_table(storage)

    def another_commit():
        commit_metadata(handle_on(storage), append("b"))

    result = commit_metadata(handle, append("a", meanwhile=another_commit))
    assert result.attempts == 2
    assert names(handle.load().metadata) == ["b", "a"]


def test_a_commit_gives_up_after_the_retries_of_the_table():
    storage, slept = MemoryStorage("t"), []
    path_table(storage, properties={"commit.retry.num-retries": "2"})
    world = Environment(sleep_seconds=slept.append, random_fraction=lambda: 0.0)

    def lose(loaded):
        commit_metadata(handle_on(storage), lambda its: set_properties(its.metadata, {"n": "1"}))
        return appended(loaded.metadata, "a")

    with pytest.raises(CommitConflictError, match=r"first in each of 3 attempts; this commit was"):
        commit_metadata(handle_on(storage, world), lose)
    assert slept == [0.1, 0.2]
    assert names(handle_on(storage).load().metadata) == []


@pytest.mark.parametrize(
    ("property", "value"),
    [("commit.retry.num-retries", "0"), ("commit.retry.total-timeout-ms", "5")],
)
def test_a_lost_commit_names_the_property_that_ended_it(property, value):
    storage = MemoryStorage("t")
    path_table(storage, properties={property: value})
    clock = itertools.count(0, 10)
    world = Environment(now_millis=lambda: next(clock), sleep_seconds=lambda seconds: None)

    def lose(loaded):
        commit_metadata(handle_on(storage), lambda its: set_properties(its.metadata, {"n": "1"}))
        return appended(loaded.metadata, "a")

    with pytest.raises(CommitConflictError, match=rf"in each of 1 attempt; .*'{property}'"):
        commit_metadata(handle_on(storage, world), lose)


def test_a_commit_corrects_a_wrong_number_of_retries():
    storage, retries = MemoryStorage("t"), "commit.retry.num-retries"
    handle = path_table(storage, properties={retries: "many"})

    def another_commit():
        commit_metadata(handle_on(storage), append("b"))

    with pytest.raises(InvalidRequestError, match=f"{retries}' is 'many', not a whole number"):
        commit_metadata(handle, append("a", meanwhile=another_commit))
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, {retries: "9"}))
    assert handle.load().metadata.properties[retries] == "9"


def test_old_metadata_files_are_deleted_if_the_table_asks_so():
    storage = MemoryStorage("t")
    keep = {"write.metadata.previous-versions-max": "1"}
    handle = path_table(storage, properties=keep)
    commit_metadata(handle, append("a"))
    commit_metadata(handle, append("b"))
    assert files(storage)[:3] == [f"v{number}.metadata.json" for number in (1, 2, 3)]
    deletes = {"write.metadata.delete-after-commit.enabled": "true"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, deletes))
    assert files(storage) == ["v3.metadata.json", "v4.metadata.json", "version-hint.text"]


def deleting_table(storage: MemoryStorage, named: str) -> TableHandle:
    """A table whose metadata log names the file ``named``, which the next commit would delete."""
    address = f"memory://t/{named}"
    return path_table(
        storage,
        **{"metadata-log": [{"timestamp-ms": 1, "metadata-file": address}]},
        properties={
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )


def test_a_metadata_file_outside_of_the_table_is_never_deleted():
    storage = MemoryStorage("t")
    storage.overwrite("other/metadata/v1.metadata.json", b"{}")
    handle = deleting_table(storage, "other/metadata/v1.metadata.json")
    commit_metadata(handle, append("a"))
    assert storage.exists("other/metadata/v1.metadata.json")


@pytest.mark.parametrize("named", ["data/f.parquet", "metadata/v2.metadata.json"])
def test_a_log_that_names_a_needed_file_deletes_nothing(named):
    """The second name is that of the file which the commit publishes."""
    storage = MemoryStorage("t")
    storage.overwrite("shop/orders/data/f.parquet", b"1")
    handle = deleting_table(storage, f"shop/orders/{named}")
    commit_metadata(handle, append("a"))
    assert storage.exists("shop/orders/data/f.parquet")
    assert names(handle_on(storage).load().metadata) == ["a"]


@pytest.mark.parametrize(
    ("deletes", "oldest"), [("1", "v0.metadata.json"), ("true", "s3://")], ids=["flag", "address"]
)
def test_a_wrong_setting_or_log_does_not_fail_a_published_commit(caplog, deletes, oldest):
    """An error after the publication would delete the files of the new snapshot."""
    storage = MemoryStorage("t")
    handle = path_table(
        storage,
        **{"metadata-log": [{"timestamp-ms": 1, "metadata-file": oldest}]},
        properties={
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": deletes,
        },
    )
    assert commit_metadata(handle, append("a")).is_published
    assert "old metadata files of memory://t/shop/orders were not deleted" in caplog.text


def test_the_metadata_file_of_a_table_with_a_codec_has_its_name():
    storage = MemoryStorage("t")
    handle = path_table(storage, properties={"write.metadata.compression-codec": "gzip"})
    commit_metadata(handle, append("a"))
    assert "v2.gz.metadata.json" in files(storage)
    assert names(handle_on(storage).load().metadata) == ["a"]


def test_a_changed_codec_holds_from_the_commit_after_the_change():
    """All writers that compete for a number so create the same name."""
    storage, codec = MemoryStorage("t"), "write.metadata.compression-codec"
    handle = path_table(storage)
    commit_metadata(handle, lambda its: set_properties(its.metadata, {codec: "gzip"}))
    commit_metadata(handle, lambda its: set_properties(its.metadata, {codec: "none"}))
    commit_metadata(handle, append("a"))
    numbered = ["v1.metadata.json", "v2.metadata.json", "v3.gz.metadata.json", "v4.metadata.json"]
    assert files(storage)[:-1] == numbered
    starts = [storage.read(f"{METADATA}/{name}")[:2] for name in numbered]
    assert starts == [b'{"', b'{"', b"\x1f\x8b", b'{"']


def test_an_unknown_codec_is_refused_and_can_be_corrected():
    storage, codec = MemoryStorage("t"), "write.metadata.compression-codec"
    handle = path_table(storage)
    with pytest.raises(InvalidRequestError, match=r"is 'zstd'.*only the codecs none, gzip"):
        commit_metadata(handle, lambda its: set_properties(its.metadata, {codec: "zstd"}))
    assert files(storage) == ["v1.metadata.json"]
    handle = path_table(storage, properties={codec: "zstd"})
    with pytest.raises(InvalidRequestError, match=r"is 'zstd'.*only the codecs none, gzip"):
        commit_metadata(handle, append("a"))
    commit_metadata(handle, lambda its: set_properties(its.metadata, {codec: "gzip"}))
    commit_metadata(handle, append("a"))
    assert "v3.gz.metadata.json" in files(storage)


def test_a_hint_that_cannot_be_written_is_only_logged(caplog):
    class WithoutOverwrite(MemoryStorage):
        def overwrite(self, path, content):
            if path.endswith("version-hint.text"):
                raise UnavailableError("no space left.")
            super().overwrite(path, content)

    handle = path_table(WithoutOverwrite("t"))
    with caplog.at_level(logging.WARNING):
        assert commit_metadata(handle, append("a")).is_published
    assert "could not update the version hint of memory://t/shop/orders" in caplog.text
    assert ". No action needed" in caplog.text
    assert ".. " not in caplog.text


class WithoutAnswer(MemoryStorage):
    """A storage whose answers to some of the next publications are lost."""

    lost: tuple[bool, ...] = ()
    """For each lost answer True if the file is written all the same."""

    def create(self, path, content):
        if not self.lost:
            return super().create(path, content)
        is_written, *self.lost = self.lost
        if is_written:
            super().create(path, content)
        raise UnavailableError("no answer")


@pytest.mark.parametrize("lost", [(True,), (False,), (False, True), (False, False, True)])
def test_a_lost_answer_is_found_out_by_reading_the_file_back(lost):
    storage = WithoutAnswer("t")
    handle = path_table(storage)
    storage.lost = lost
    assert commit_metadata(handle, append("a")).attempts == 1
    assert names(handle_on(storage).load().metadata) == ["a"]


def test_an_outcome_that_stays_unknown_is_an_error_of_its_own():
    storage = WithoutAnswer("t")
    handle = path_table(storage)
    storage.lost = (False,) * 3
    with pytest.raises(CommitOutcomeUnknownError, match=r"v2.metadata.json got no answer"):
        commit_metadata(handle, append("a"))


def test_a_lost_answer_to_a_race_that_another_writer_won_is_a_lost_race():
    storage = WithoutAnswer("t")
    handle = path_table(storage)

    def another_commit():
        commit_metadata(handle_on(storage), append("b"))
        storage.lost = (True,)

    assert commit_metadata(handle, append("a", meanwhile=another_commit)).attempts == 2
    assert names(handle_on(storage).load().metadata) == ["b", "a"]


def test_a_writer_that_slept_until_its_number_was_free_again_publishes_nothing_there():
    storage = MemoryStorage("t")
    deletes = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    handle = path_table(storage, properties=deletes)

    def commits_that_free_the_number():
        for name in ("b", "c", "d"):
            commit_metadata(handle_on(storage), append(name))
        assert "v2.metadata.json" not in files(storage)

    commit_metadata(handle, append("a", meanwhile=commits_that_free_the_number))
    assert names(handle_on(storage).load().metadata) == ["b", "c", "d", "a"]
    assert files(storage) == ["v4.metadata.json", "v5.metadata.json", "version-hint.text"]


def test_a_table_that_was_dropped_and_created_again_is_another_table():
    storage = MemoryStorage("t")
    handle = path_table(storage)

    def another_table():
        storage.delete_directory(METADATA)
        path_table(storage, **{"table-uuid": "other"})

    with pytest.raises(CommitConflictError, match="was dropped and created again meanwhile"):
        commit_metadata(handle, append("a", meanwhile=another_table))
    assert names(handle_on(storage).load().metadata) == []
    assert "v2.metadata.json" not in files(storage)


def refused_in_a_table_created_again(storage, handle, *, after, commits, **more):
    """A commit fails if a new table, with `commits`, takes the place just after it wrote a file.

    :param after: the name of the metadata file of the old table that is written last
    """
    original = storage.create

    def replaced(path: str, content: bytes) -> bool:
        created = original(path, content)
        if path.endswith(f"/{after}"):
            storage.create = original
            storage.delete_directory(METADATA)
            path_table(storage, **{"table-uuid": "other"}, **more)
            for number in range(commits):
                commit_metadata(handle_on(storage), append(f"b{number}"))
        return created

    storage.create = replaced
    with pytest.raises(CommitConflictError, match=r"was dropped and created again meanwhile"):
        commit_metadata(handle, append("a"))
    assert names(handle_on(storage).load().metadata) == [f"b{number}" for number in range(commits)]


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_the_place_check_keeps_the_metadata_of_a_table_that_was_created_again(commits):
    """The new table has reached the number of the old table's last commit, or a later one."""
    storage = MemoryStorage("t")
    handle = path_table(storage)
    refused_in_a_table_created_again(storage, handle, after="v2.metadata.json", commits=commits)
    numbers = range(1, commits + 2)
    assert files(storage) == [*(f"v{n}.metadata.json" for n in numbers), "version-hint.text"]


@pytest.mark.parametrize("commits", [0, 1, 2, 3, 6])
def test_old_metadata_is_not_deleted_in_a_table_that_was_created_again(commits):
    """The file just published does not exist there, as after later commits that deleted it."""
    storage = MemoryStorage("t")
    deletes = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    handle = path_table(storage, properties=deletes)
    for number in range(3):
        commit_metadata(handle, append(f"o{number}"))
    refused_in_a_table_created_again(
        storage, handle, after="v5.metadata.json", commits=commits, properties=deletes
    )


def test_a_dropped_table_does_not_come_into_being_again():
    storage = MemoryStorage("t")
    handle = path_table(storage)
    drop = append("a", meanwhile=lambda: storage.delete_directory(METADATA))
    with suppress(Exception):
        commit_metadata(handle, drop)
    assert files(storage) == []


def test_the_table_of_a_catalog_is_read_only_by_its_directory():
    storage = MemoryStorage("t")
    path_table(storage)
    content = storage.read(f"{METADATA}/v1.metadata.json")
    storage.delete(f"{METADATA}/v1.metadata.json")
    storage.overwrite(f"{METADATA}/00001-5e.metadata.json", content)
    with pytest.raises(UnsupportedError, match=r"belongs to a catalog: .*00001-5e.metadata.json"):
        commit_metadata(handle_on(storage), append("a"))


def test_a_table_opened_by_its_metadata_file_is_read_only():
    storage = MemoryStorage("t")
    path_table(storage)
    pointer = FixedPointer(storage, ROOT, NO_ROOTS, f"{METADATA}/v1.metadata.json")
    assert json.loads(storage.read(f"{METADATA}/v1.metadata.json"))["format-version"] == 2
    with pytest.raises(UnsupportedError, match=r"opened by its metadata file .*v1.metadata.json"):
        commit_metadata(TableHandle(pointer), append("a"))

"""The current metadata file of a directory is the newest one that the hint or the names show."""

from __future__ import annotations

import gzip
import json

import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.iceberg.metadata.metadata_file import find_metadata_file, read_metadata_file
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.metadata.test_table_metadata import OF_VERSION_2


def with_files(*names: str, hint: str | None = None) -> MemoryStorage:
    storage = MemoryStorage("found")
    for name in names:
        storage.overwrite(f"t/metadata/{name}", json.dumps(OF_VERSION_2).encode())
    if hint is not None:
        storage.overwrite("t/metadata/version-hint.text", hint.encode())
    return storage


@pytest.mark.parametrize(
    ("names", "hint", "found"),
    [
        (["v1", "v2", "v3"], "3", "v3"),
        (["v1", "v2", "v3"], "1\n", "v3"),
        (["v9", "v10"], None, "v10"),
        (["v9", "v10"], "garbage", "v10"),
        (["v9", "v10"], "2", "v10"),
        (["00001-a", "00002-b"], None, "00002-b"),
        (["v1", "v2", "v4"], "1", "v2"),
    ],
)
def test_the_hint_is_a_start_and_the_highest_number_is_the_rule_without_it(names, hint, found):
    storage = with_files(*(f"{name}.metadata.json" for name in names), hint=hint)
    assert find_metadata_file(storage, "t") == f"t/metadata/{found}.metadata.json"


def test_a_hint_above_every_file_is_reported(caplog):
    storage = with_files("v1.metadata.json", "v2.metadata.json", hint="4")
    assert find_metadata_file(storage, "t") == "t/metadata/v2.metadata.json"
    assert "version-hint.text has 4, but the newest metadata file is v2.meta" in caplog.text
    assert "newer metadata files up to version 4 were lost" in caplog.text
    assert "that commit uses the number 3 again" in caplog.text
    assert "write 2 into the hint" in caplog.text


@pytest.mark.parametrize("hint", [None, "garbage", "1", "2", "3"])
def test_a_hint_that_is_missing_wrong_or_old_is_not_reported(caplog, hint):
    find_metadata_file(with_files("v2.metadata.json", "v3.metadata.json", hint=hint), "t")
    assert not caplog.records


@pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_a_compressed_file_is_found_and_read(name):
    storage = with_files("v1.metadata.json", hint="1")
    storage.overwrite(f"t/metadata/{name}", gzip.compress(json.dumps(OF_VERSION_2).encode()))
    assert find_metadata_file(storage, "t") == f"t/metadata/{name}"
    assert read_metadata_file(storage, f"t/metadata/{name}").location == "file:///t"


def test_two_files_with_the_highest_number_are_for_the_catalog_to_decide():
    storage = with_files("00001-a.metadata.json", "00001-b.metadata.json")
    with pytest.raises(InvalidRequestError, match=r"2 metadata files with the number 1: 00001-a"):
        find_metadata_file(storage, "t")


def test_a_directory_without_a_metadata_file_is_named():
    with pytest.raises(NotFoundError, match=r"t/metadata has no file of table metadata"):
        find_metadata_file(with_files("a-m0.avro", "note.json"), "t")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"{}", mtime=0)[:-4], "ends early"),
        (b"\x1f\x8b" + bytes(20), "cannot be decompressed with gzip"),
        (b"[]", "holds a list instead of a JSON object"),
        (b"{", "is not JSON"),
    ],
)
def test_a_damaged_file_is_named(content, reason):
    storage = with_files()
    storage.overwrite("t/metadata/v1.metadata.json", content)
    with pytest.raises(CorruptTableError, match=rf"v1\.metadata\.json.* {reason}"):
        read_metadata_file(storage, "t/metadata/v1.metadata.json")

"""Addresses of one place are equal however they are spelled, and compared name by name."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.storage import NO_ROOTS, ExternalRoots, LocalStorage, MemoryStorage
from lakeformat.storage.location import location_of, one_spelling

AZURE = "account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/x/y", "file:///x/y"),
        ("file:/x/y", "/x/y"),
        ("FILE://localhost/x//y/", "/x/./z/../y"),
        ("s3://b/x/y", "s3a://b/x//y/"),
        (f"abfs://c@{AZURE}/x", f"abfss://c@{AZURE.upper()}/x/"),
        ("hdfs://NameNode:8020/x", "hdfs://namenode:8020/x/./"),
        ("memory://n/x", "memory://n//x"),
    ],
)
def test_every_spelling_of_a_place_is_equal(one, other):
    assert location_of(one) == location_of(other)
    assert one_spelling(one) == one_spelling(other)
    assert one_spelling(one_spelling(one)) == one_spelling(one)


@pytest.mark.parametrize(
    ("root", "other"),
    [
        ("/data/fast", "/data/faster/x"),
        ("/data/fast", "/data/fast/../slow"),
        ("/data/fast", "/data"),
        ("s3://b/x", "s3://b/xy"),
        ("s3://b/x", "s3://c/x"),
        ("s3://b/x", "gs://b/x"),
        ("/data/a%2Fb", "/data/a/b"),
        ("memory://n/x", "memory://N/x"),
        ("hdfs://one/x", "hdfs://other/x"),
        (f"abfss://c@{AZURE}/x", f"abfss://c@other-{AZURE}/x"),
    ],
)
def test_a_root_allows_nothing_beside_it(root, other):
    assert not location_of(root).holds(location_of(other))


def test_a_root_allows_itself_and_all_below():
    roots = ExternalRoots.of(["s3://bucket/lake", "/data"])
    for allowed in ("s3a://bucket/lake", "s3://bucket/lake/a/b", "file:/data/x"):
        assert roots.allow(location_of(allowed)), allowed
    for refused in ("s3://bucket", "s3://bucket/lakes", "file:/dat", "/"):
        assert not roots.allow(location_of(refused)), refused
    assert not NO_ROOTS.allow(location_of("/data"))


def test_an_account_that_is_not_named_may_be_any():
    """A possible overlap is refused, but a place is never allowed because of it."""
    named, unnamed = location_of(f"abfss://c@{AZURE}/x/y"), location_of("az://c/x")
    assert named.overlaps(unnamed)
    assert not unnamed.holds(named)


def test_a_percent_sign_is_an_escape_for_callers_and_a_name_in_metadata():
    caller = ExternalRoots.of(["file:///data/a%20b"])
    assert caller.allow(location_of("file:/data/a b/f"))
    assert not caller.allow(location_of("file:/data/a%20b/f"))


@pytest.mark.parametrize("address", ["", " ", "x\0y", "relative/path", "file://host/x", "s3://"])
def test_what_is_no_address_is_refused_with_the_table(address):
    with pytest.raises(lake.InvalidRequestError, match=r"^t names the external path"):
        ExternalRoots.of(["/x"]).require(address, "t")


@pytest.mark.parametrize("address", ["s3://AK:private@bucket/x", "hdfs://AK:private@host/x/y"])
def test_a_refused_address_is_shown_without_its_credential(address):
    with pytest.raises(lake.InvalidRequestError, match=r"names the external path \S+…@") as found:
        NO_ROOTS.require(address, "t", levels=1)
    assert "private" not in str(found.value)


def test_a_list_is_asked_for():
    with pytest.raises(lake.InvalidRequestError, match=r"write \['/data'\]"):
        ExternalRoots.of("/data")


def test_the_storage_of_an_allowed_place_reaches_nothing_else(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("theirs")
    roots = ExternalRoots.of([str(tmp_path / "root")])
    storage, path = roots.place(f"file:{tmp_path}/root/a", LocalStorage(), "t")
    storage.overwrite(path, b"mine")
    assert storage.read(path) == b"mine"
    for outside in (f"{tmp_path}/secret", f"{tmp_path}/root/../secret", f"{tmp_path}/roots"):
        for use in (storage.read, storage.list, storage.delete, storage.exists, storage.open_input):
            with pytest.raises(lake.InvalidRequestError, match="lies outside of"):
                use(outside)
    assert (tmp_path / "secret").read_text() == "theirs"


def test_a_place_on_the_storage_of_the_table_is_opened_with_that_storage():
    near = MemoryStorage("walls-near")
    roots = ExternalRoots.of(["memory://walls-near/out"])
    assert roots.place("memory://walls-near/out/f", near, "t") == (near, "out/f")

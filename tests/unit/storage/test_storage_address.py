"""Valid addresses, and the errors for invalid ones."""

from __future__ import annotations

import os

import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage import LocalStorage, MemoryStorage, ObjectStorage, open_storage
from lakeformat.storage.rename import RenameStorage


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/data/warehouse", "/data/warehouse"),
        ("/data/warehouse/", "/data/warehouse"),
        ("//data//warehouse///", "/data/warehouse"),
        ("/data/../other", "/other"),
        ("/data/100%20/a b", "/data/100%20/a b"),
        ("file:///data/warehouse/", "/data/warehouse"),
        ("file:/data/warehouse", "/data/warehouse"),
        ("FILE://localhost/data", "/data"),
        ("file:///data/a%20b/100%25/c#d?e", "/data/a b/100%/c#d?e"),
        ("file:///data/50%/x", "/data/50%/x"),
        ("file:///data/dt%3D1%2F2", "/data/dt=1/2"),
        ("/data/s3://odd", "/data/s3:/odd"),
    ],
)
def test_a_local_address_gives_an_absolute_path(address, path):
    storage, found = open_storage(address)
    assert isinstance(storage, LocalStorage)
    assert found == path


def test_a_relative_path_starts_at_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("warehouse", "./warehouse/", "x/../warehouse"):
        assert open_storage(address)[1] == f"{tmp_path}/warehouse"
    assert open_storage(".")[1] == str(tmp_path)


def test_a_tilde_is_the_home_directory_in_a_path_but_not_in_a_uri(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert open_storage("~")[1] == "/home/ada"
    assert open_storage("~/wh")[1] == "/home/ada/wh"
    assert open_storage("file:///~/wh")[1] == "/~/wh"
    assert open_storage("./~/wh")[1] == f"{os.getcwd()}/~/wh"


def test_a_path_object_is_an_address(tmp_path):
    assert open_storage(tmp_path)[1] == str(tmp_path)


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("memory://address-test", ""),
        ("memory://address-test/", ""),
        ("memory://address-test/a/b/", "a/b"),
        ("MEMORY://address-test/a%20b", "a b"),
    ],
)
def test_a_memory_address_gives_the_storage_of_that_name(address, path):
    storage, found = open_storage(address)
    assert isinstance(storage, MemoryStorage)
    assert storage is open_storage("memory://address-test/elsewhere")[0]
    assert storage is not open_storage("memory://address-test-2")[0]
    assert found == path


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("", "give a path"),
        ("  ", "give a path"),
        ("/data\0", "give a path"),
        ("/", "below it"),
        ("file://", "below it"),
        ("file:///", "below it"),
        ("file://data/wh", "write file:///data/wh"),
        ("file:///a%00b", "remove the %00"),
        ("~nobody-has-this-name/wh", "names no home directory"),
        ("memory://", "memory://name/path"),
        ("memory:///a", "memory://name/path"),
        ("memory:/a", "memory://name/path"),
        ("memory:a", "no slashes after the scheme: write memory://"),
        ("S3:bucket/wh", "no slashes after the scheme: write s3://"),
    ],
)
def test_what_is_no_address_is_refused_with_advice(address, advice):
    with pytest.raises(InvalidRequestError, match=advice) as caught:
        open_storage(address)
    assert not isinstance(caught.value, UnsupportedError)


@pytest.mark.parametrize("address", ["ftp://host/wh", "https://host/wh", "oss://bucket/wh"])
def test_an_unknown_scheme_is_named_beside_the_known_ones(address):
    scheme = address.partition(":")[0]
    with pytest.raises(UnsupportedError, match=rf"'{scheme}'.*file://.*memory://.*s3://"):
        open_storage(address)


@pytest.mark.parametrize(
    ("address", "bucket", "path"),
    [
        ("s3://bucket", "s3://bucket/", ""),
        ("s3://bucket/", "s3://bucket/", ""),
        ("S3://Bucket//wh//a b/", "s3://Bucket/", "wh/a b"),
        ("s3a://bucket/wh/dt=a%3Ab", "s3a://bucket/", "wh/dt=a%3Ab"),
        ("gs://bucket/wh", "gs://bucket/", "wh"),
        ("abfss://c@acct.dfs.core.windows.net/wh", "abfss://c@acct.dfs.core.windows.net/", "wh"),
    ],
)
def test_an_object_address_gives_a_bucket_and_a_literal_path(address, bucket, path):
    storage, found = open_storage(address)
    assert isinstance(storage, ObjectStorage)
    assert (storage.uri(""), found) == (bucket, path)
    assert open_storage(storage.uri(path))[1] == path


@pytest.mark.parametrize(
    ("address", "root", "path"),
    [
        ("hdfs://nn:8020/wh/", "hdfs://nn:8020/", "/wh"),
        ("hdfs:///wh/a%20b", "hdfs:///", "/wh/a%20b"),
        ("viewfs://cluster/wh", "viewfs://cluster/", "/wh"),
    ],
)
def test_an_hdfs_address_gives_an_absolute_path(address, root, path):
    storage, found = open_storage(address)
    assert isinstance(storage, RenameStorage)
    assert (storage.uri(""), found) == (root, path)
    assert open_storage(storage.uri(path))[1] == path


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("s3:/typo", "write s3://bucket/path"),
        ("s3:///wh", "write s3://bucket/path"),
        ("s3://bucket/a/../b", "write the full path"),
        ("az://container/wh", r"set azure\.account"),
        ("abfss://c@/wh", r"set azure\.account"),
        ("abfss://c@-acct/wh", "an invalid account after the @: write abfss://container@account"),
        ("hdfs://nn:8020/", "below the root"),
        ("hdfs://nn:8020", "below the root"),
        ("hdfs://nn/../x", "its path contains '\\.' or"),
        ("hdfs://user:pw@nn/wh", "not an HDFS address"),
    ],
)
def test_what_is_no_remote_address_is_refused_with_advice(address, advice):
    with pytest.raises(InvalidRequestError, match=advice):
        open_storage(address)


def test_credentials_in_an_address_are_refused_and_not_repeated():
    with pytest.raises(InvalidRequestError, match="give the key in the options of docs") as caught:
        open_storage("s3://key:hidden@bucket/wh")
    assert "hidden" not in str(caught.value)


def test_opening_a_warehouse_makes_no_directory(tmp_path):
    open_storage(f"{tmp_path}/warehouse")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", [None, 3, b"/data", ["/data"]])
def test_what_is_no_text_is_no_address(address):
    with pytest.raises(InvalidRequestError, match="is not an address"):
        open_storage(address)

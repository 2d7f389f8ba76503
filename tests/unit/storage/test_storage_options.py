"""The options of storages: Paimon's names, checked by name, never shown."""

from __future__ import annotations

import re
import sys
import traceback
from base64 import b64encode
from pathlib import Path

import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage import LockedCreation, ObjectStorage, is_storage_option, open_storage
from lakeformat.storage.store_options import STORE_OPTIONS, store_config

PAGE = Path(__file__).resolve().parents[3] / "docs" / "storage.md"


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("s3.endpoint", "http://127.0.0.1:9000/", "endpoint", "http://127.0.0.1:9000"),
        ("s3.endpoint", "s3.example.org", "endpoint", "https://s3.example.org"),
        ("s3a.endpoint", "s3.example.org", "endpoint", "https://s3.example.org"),
        ("fs.s3a.access.key", "k", "access_key_id", "k"),
        ("s3.access-key", "k", "access_key_id", "k"),
        ("s3.secret.key", "k", "secret_access_key", "k"),
        ("s3.session.token", "t", "session_token", "t"),
        ("s3.path.style.access", "True", "path_style", True),
        ("s3.path-style-access", "false", "path_style", False),
        ("s3.endpoint.region", "eu-west-1", "region", "eu-west-1"),
        ("s3.connection.timeout", "200000", "timeout", 200.0),
        ("s3.connection.timeout", "2 m", "timeout", 120.0),
        ("unsafe.single-writer", "true", "single_writer", True),
    ],
)
def test_an_option_of_s3_has_the_names_paimon_gives_it(name, text, key, value):
    assert store_config({name: text}, "s3").values == {key: value}
    assert is_storage_option(name)


def test_hadoop_names_the_azure_account_inside_the_option():
    config = store_config({"fs.azure.account.key.acct.dfs.core.windows.net": "k"}, "azure")
    assert config.values == {"account_name": "acct", "account_key": "k"}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"s3.endpiont": "x"}, r"s3\.endpiont is not an option.*Did you mean s3\.endpoint"),
        ({"s3.multiobjectdelete.enable": "x"}, r"is not an option of a storage"),
        ({"s3.path.style.access": "yes"}, r"s3\.path\.style\.access .* must be true or false"),
        ({"s3.endpoint": "not an address"}, r"s3\.endpoint has .* must be an address"),
        ({"s3.endpoint": "http://user:pw@host"}, r"s3\.endpoint has .* must be an address"),
        ({"s3.connection.timeout": "soon"}, "must be a duration"),
        ({"s3.access-key": "k"}, "set together"),
        ({"s3.session.token": "t"}, "set together"),
        ({"s3.access-key": "k", "s3.access.key": "k"}, "are two names of one option"),
        ({"gs.endpoint": "https://host"}, "does not apply to s3://"),
        ({"warehouse": "x"}, "is not an option of a storage"),
        ({"s3.access-key": 3}, "must be text"),
    ],
)
def test_what_is_no_option_of_s3_is_refused_by_name(options, advice):
    with pytest.raises(InvalidRequestError, match=advice):
        open_storage("s3://lake/wh", options)


@pytest.mark.parametrize("name", ["s3.path.style.access", "s3.endpoint", "s3.connection.timeout"])
def test_a_secret_in_the_wrong_option_is_not_shown(name):
    with pytest.raises(InvalidRequestError, match="has a wrong value") as refused:
        open_storage("s3://lake/wh", {name: "S3cr3t Pa?55&x=1"})
    assert "S3cr3t" not in str(refused.value)


def test_a_secret_in_the_name_of_an_option_is_not_shown():
    with pytest.raises(InvalidRequestError, match=r"s3\.secret-key=… is not an option") as refused:
        open_storage("s3://lake/wh", {"s3.secret-key=S3cr3t\n=x": "x"})
    assert "S3cr3t" not in str(refused.value)


@pytest.mark.parametrize("address", ["memory://options", "/data/wh", "hdfs://nn/wh"])
def test_an_option_of_s3_does_not_apply_elsewhere(address):
    with pytest.raises(InvalidRequestError, match=r"s3\.region does not apply"):
        open_storage(address, {"s3.region": "eu-west-1"})


KEYFILE = "gs.auth.service.account.json.keyfile"
KEY = "MIIEvQIBADANBg/k+qhkiG9w0BAQEFAASC"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"type": "service_account", "private_key": "{KEY}"}}',
        f'{{\n  "private_key": "{KEY}"\n}}\n',
        f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n",
        f"private_key={KEY}",
        b64encode(f'{{"private_key": "{KEY}"}}'.encode()).decode(),
        KEY * 200,
    ],
)
def test_a_key_in_place_of_the_path_of_its_file_is_refused_and_never_shown(text):
    with pytest.raises(InvalidRequestError, match="must be the path of a file") as refused:
        open_storage("gs://lake/wh", {KEYFILE: text})
    shown = "".join(traceback.format_exception(refused.value))
    assert KEY not in shown
    assert text not in shown


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"])
def test_a_key_in_the_environment_in_place_of_a_path_is_never_shown(monkeypatch, name):
    monkeypatch.setenv(name, f'{{"private_key": "{KEY}"}}')
    with pytest.raises(InvalidRequestError, match="the key file of the service account") as given:
        open_storage("gs://lake/wh")
    assert KEY not in "".join(traceback.format_exception(given.value))


def test_a_key_that_looks_like_a_path_is_not_shown_where_it_leads_to_no_file():
    with pytest.raises(InvalidRequestError, match=f"Correct {re.escape(KEYFILE)}") as refused:
        open_storage("gs://lake/wh", {KEYFILE: KEY})
    assert KEY not in "".join(traceback.format_exception(refused.value))


def test_a_secret_that_cannot_be_is_not_repeated():
    with pytest.raises(InvalidRequestError, match=r"s3\.secret-key has a wrong value: it is empty"):
        store_config({"s3.secret-key": "  "}, "s3")
    assert "hidden" not in repr(store_config({"s3.secret-key": "hidden"}, "s3"))


def test_the_bucket_moves_into_the_host_name():
    options = {"s3.endpoint": "http://127.0.0.1:9000", "s3.path.style.access": "false"}
    storage, _ = open_storage("s3://lake", options)
    assert isinstance(storage, ObjectStorage)
    assert storage.client.patient.config["endpoint"] == "http://lake.127.0.0.1:9000"


def test_an_address_and_an_option_name_one_azure_account():
    with pytest.raises(InvalidRequestError, match="another account"):
        open_storage("abfss://c@acct.dfs.core.windows.net", {"azure.account": "other"})


@pytest.mark.parametrize("address", ["memory://single", "s3://lake"])
def test_a_single_writer_publishes_under_a_lock_of_its_process(address):
    storage, _ = open_storage(address, {"unsafe.single-writer": "true"})
    assert isinstance(storage, LockedCreation)
    assert isinstance(
        open_storage(address, {"unsafe.single-writer": "false"})[0], type(storage.inner)
    )


def test_without_obstore_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'airflow-provider-lake\[s3\]'"):
        open_storage("s3://lake")


@pytest.mark.parametrize(
    "name", [name for option in STORE_OPTIONS for name in (option.name, *option.synonyms)]
)
def test_every_option_is_on_the_page(name):
    assert f"`{name}`" in PAGE.read_text()

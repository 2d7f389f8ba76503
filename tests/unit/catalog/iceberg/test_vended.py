"""Options that a catalog gives for a storage take the place of the caller's credentials."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.vended import options_for

MINE = {
    "s3.access.key": "mine",
    "s3.secret-key": "my secret",
    "s3a.endpoint": "https://mine",
    "s3.connection.timeout": "5s",
}
THEIRS = {
    "s3.access-key-id": "theirs",
    "s3.secret-access-key": "their secret",
    "s3.session-token": "their token",
    "s3.endpoint": "https://theirs",
    "client.region": "ignored",
    "s3.region": "eu-1",
    "s3.path-style-access": "true",
    "io-impl": "org.example.FileIO",
}


def test_credentials_of_the_catalog_replace_all_of_the_caller():
    assert options_for("s3://b/t", THEIRS, MINE) == {
        "s3.access-key": "theirs",
        "s3.secret-key": "their secret",
        "s3.session.token": "their token",
        "s3.endpoint": "https://theirs",
        "s3.region": "eu-1",
        "s3.path.style.access": "true",
        "s3.connection.timeout": "5s",
    }


def test_without_credentials_of_the_catalog_those_of_the_caller_go_where_the_caller_says():
    found = options_for("s3://b/t", {"s3.endpoint": "https://theirs", "s3.region": "eu-1"}, MINE)
    assert found["s3.access-key"] == "mine"
    assert found["s3.endpoint"] == "https://mine"
    assert found["s3.region"] == "eu-1"


@pytest.mark.parametrize(
    ("address", "vended", "expected"),
    [
        ("gs://b/t", {"gcs.oauth2.token": "x"}, {"gs.auth.access-token": "x"}),
        (
            "abfss://c@acct.dfs.core.windows.net/t",
            {"adls.sas-token.acct.dfs.core.windows.net": "?sv=1"},
            {"azure.sas-token": "sv=1"},
        ),
        (
            "az://c/t",
            {"adls.sas-token.acct.blob.core.windows.net": "sv=1"},
            {"azure.sas-token": "sv=1", "azure.account": "acct"},
        ),
        ("gs://b/t", {"s3.access-key-id": "x"}, {}),
    ],
)
def test_each_store_gets_its_own_options(address, vended, expected):
    assert options_for(address, vended, {}) == expected


def test_a_catalog_that_signs_requests_itself_is_refused():
    signing = {"s3.remote-signing-enabled": "true"}
    with pytest.raises(lake.UnsupportedError, match="sign each request"):
        options_for("s3://b/t", signing, {})
    assert options_for("s3://b/t", signing, MINE)["s3.access-key"] == "mine"

# SPDX-License-Identifier: Apache-2.0
"""Merges the storage options that a REST catalog sends for one table with the caller's options.

If the catalog sends credentials, they replace all credentials of the caller, so that parts of two
keys are never mixed. All other options of the catalog then also replace the caller's options.

If the catalog sends no credentials, the caller's options win, so that the catalog cannot replace an
endpoint that the caller gives.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import UnsupportedError
from lakeformat.storage.object_address import parse_object_address
from lakeformat.storage.store_options import option_name

__all__ = ["options_for"]

_NAMES = {
    "adls.account-key": "azure.account-key",
    "adls.account-name": "azure.account",
    "adls.auth.shared-key.account.key": "azure.account-key",
    "adls.auth.shared-key.account.name": "azure.account",
    "adls.client-id": "azure.client-id",
    "adls.client-secret": "azure.client-secret",
    "adls.sas-token": "azure.sas-token",
    "adls.tenant-id": "azure.tenant-id",
    "client.region": "s3.region",
    "gcs.oauth2.token": "gs.auth.access-token",
    "gcs.service.host": "gs.endpoint",
    "s3.access-key-id": "s3.access-key",
    "s3.endpoint": "s3.endpoint",
    "s3.path-style-access": "s3.path.style.access",
    "s3.region": "s3.region",
    "s3.secret-access-key": "s3.secret-key",
    "s3.session-token": "s3.session.token",
}
_CREDENTIALS = frozenset(
    {
        "azure.account-key",
        "azure.client-id",
        "azure.client-secret",
        "azure.sas-token",
        "azure.tenant-id",
        "gs.auth.access-token",
        "gs.auth.service.account.json.keyfile",
        "s3.access-key",
        "s3.secret-key",
        "s3.session.token",
    }
)
_SAS_OF_ACCOUNT = "adls.sas-token."
_SIGNS_REMOTELY = "s3.remote-signing-enabled"


def options_for(
    address: str, vended: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the options that open the object store of ``address``, with this library's keys.

    ``vended`` are the catalog's options, with Iceberg's keys; ``given`` are the caller's options.
    If neither has credentials and the catalog wants to sign each request, ``UnsupportedError`` is
    raised.
    """
    store = parse_object_address(address)[0]
    mine = {option_name(key): value for key, value in given.items()}
    theirs = {
        key: value for key, value in _renamed(vended).items() if key.startswith(f"{store.kind}.")
    }
    if store.account:  # the address itself names the account
        theirs.pop("azure.account", None)
    if _CREDENTIALS & theirs.keys():
        kept = {key: value for key, value in mine.items() if key not in _CREDENTIALS}
        return kept | theirs
    if not _CREDENTIALS & mine.keys() and vended.get(_SIGNS_REMOTELY, "").lower() == "true":
        raise UnsupportedError(
            f"the catalog gives no credentials for {address}, but wants to sign each request "
            "itself, which this version does not support: give the credentials of the storage as "
            "options, such as s3.access-key and s3.secret-key, or let the catalog vend them"
        )
    return theirs | mine


def _renamed(vended: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in sorted(vended.items()):  # sorted, so that s3.region replaces client.region
        if key in _NAMES:
            found[_NAMES[key]] = value
        elif key.startswith(_SAS_OF_ACCOUNT):
            found["azure.sas-token"] = value.removeprefix("?")
            found["azure.account"] = key.removeprefix(_SAS_OF_ACCOUNT).partition(".")[0]
    return found

# SPDX-License-Identifier: Apache-2.0
"""Marker objects, which make empty directories visible in an object store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lakeformat.errors import UnsupportedError
from lakeformat.storage.object_client import ObjectClient, open_client
from lakeformat.storage.object_errors import is_missing

__all__ = ["DIRECTORY_MARKER", "delete_foreign_marker", "delete_foreign_markers"]

DIRECTORY_MARKER = ".directory"
"""The name of an empty object in a created directory. It is not listed, and no engine reads it.

The name of Hadoop's marker ends in a slash, and the client cannot write such a name.
"""


def delete_foreign_markers(client: ObjectClient, key: str) -> None:
    """Delete the markers below an emptied directory: empty objects whose names end in a slash.

    Raise ``UnsupportedError`` if the store is not S3, and ``UnavailableError`` if the deletion
    fails.
    """
    _require_s3(client, key)
    if _are_deleted_at_once(client, key):
        return
    with client.asking("list", key):
        found = client.api.list(client.patient, key).collect()
    # The client lists the names without the slash at their end.
    for name in sorted({item["path"] for item in found if item["size"] == 0}):
        delete_foreign_marker(client, name)


def _are_deleted_at_once(client: ObjectClient, key: str) -> bool:
    """Delete all markers below a directory with pyarrow's S3 client, and return True.

    Return False if pyarrow has no S3 client, or if that client fails. For example, it fails if the
    store needs the proxy of the environment, which pyarrow ignores. ``delete_foreign_marker`` uses
    the proxy, but is slower for many markers.
    """
    try:
        from pyarrow.fs import S3FileSystem
    except ImportError:
        return False
    given = client.config.values
    words = {
        "access_key": given.get("access_key_id"),
        "secret_key": given.get("secret_access_key"),
        "session_token": given.get("session_token"),
        "region": given.get("region"),
        "endpoint_override": client.endpoint or None,
        "force_virtual_addressing": not given.get("path_style", True),
    }
    try:
        S3FileSystem(**words).delete_dir(f"{client.address.bucket}/{key}")
    except OSError:
        return False
    return True


def delete_foreign_marker(client: ObjectClient, key: str) -> None:
    """Delete the object ``<key>/``, and nothing below it; do nothing if it is missing.

    Raise ``UnsupportedError`` if the store is not S3.
    """
    _require_s3(client, key)
    of_directory = _client_of_directory(client, key)
    with client.asking("delete the marker of", key):
        try:
            client.api.delete(of_directory.patient, "")
        except FileNotFoundError as error:
            if not is_missing(error):
                raise


def _client_of_directory(client: ObjectClient, key: str) -> ObjectClient:
    """Return a client whose root is a directory.

    This client finds the directory's marker, ``<key>/``, under the empty name. The client of the
    bucket cannot delete the marker, because it removes the slash at the end of each name.
    """
    return _with_values(
        client,
        endpoint=_address(client, key),
        path_style=True,
        virtual_hosted_style_request=True,  # the bucket is not added to the endpoint
        disable_bulk_delete=True,  # DELETE has the name in its address
    )


def _address(client: ObjectClient, key: str) -> str:
    """Return the address to which the client sends the requests for an object.

    The client shows the address only as a part of a signed URL. So this function signs a URL with
    a dummy key, and takes the address from it.
    """
    signer = _with_values(client, access_key_id="-", secret_access_key="-", session_token=None)
    with client.asking("find the address of", key):
        signed: str = client.api.sign(signer.patient, "DELETE", key, timedelta(minutes=1))
    return signed.partition("?")[0]


def _with_values(client: ObjectClient, **values: object) -> ObjectClient:
    config = replace(client.config, values={**client.config.values, **values})
    return open_client(client.address, config)


def _require_s3(client: ObjectClient, key: str) -> None:
    if client.address.kind != "s3":
        raise UnsupportedError(
            f"{client.uri(key)} still has objects whose names end in a slash, written by another"
            " program: delete them with the store's own tool."
        )

# SPDX-License-Identifier: Apache-2.0
"""Marker objects, which make empty directories visible in an object store."""

from __future__ import annotations

from lakeformat.errors import UnavailableError, UnsupportedError
from lakeformat.storage.object_client import ObjectClient

__all__ = ["DIRECTORY_MARKER", "delete_foreign_markers"]

DIRECTORY_MARKER = ".directory"
"""The name of an empty object in a created directory. It is not listed, and no engine reads it.

The name of Hadoop's marker ends in a slash, and the client cannot write such a name.
"""


def delete_foreign_markers(client: ObjectClient, key: str) -> None:
    """Delete the markers below an emptied directory: objects whose names end in a slash.

    Raise ``UnsupportedError`` if the store is not S3, or if pyarrow has no S3 client. Raise
    ``UnavailableError`` if the deletion fails.
    """
    uri, address = client.uri(key), f"s3://{client.address.bucket}/{key}"
    if client.address.kind != "s3":
        raise UnsupportedError(
            f"{uri} still has objects whose names end in a slash, written by another program:"
            " delete them with the store's own tool."
        )
    try:
        from pyarrow.fs import S3FileSystem
    except ImportError as error:
        raise UnsupportedError(
            f"the files of {uri} are deleted, but empty objects whose names end in a slash remain, "
            "and this pyarrow has no S3 to delete them. Check that nothing else is left there, and "
            f"delete them, for example with: aws s3 rm --recursive {address}/"
        ) from error
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
        # Its message is not shown: it may quote the request.
        raise UnavailableError(
            f"Cannot delete the markers of empty directories below {uri}: retry, or delete them"
            f" with: aws s3 rm --recursive {address}/"
        ) from None

# SPDX-License-Identifier: Apache-2.0
"""Opens addresses of HDFS through Arrow, which loads Hadoop's own client library."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyarrow.fs import FileSystem

from lakeformat.errors import InvalidRequestError, UnavailableError
from lakeformat.storage.rename import RenameStorage
from lakeformat.storage.shown import without_credentials

__all__ = ["open_hadoop"]

_ADDRESS = re.compile(r"(hdfs|viewfs)://([A-Za-z0-9._-]*)(?::(\d+))?(/.*)?", re.IGNORECASE)


def open_hadoop(address: str) -> tuple[RenameStorage, str]:
    """Return the storage of an ``hdfs://`` or ``viewfs://`` address, and the path in it.

    The storage is not connected yet. An invalid address raises ``InvalidRequestError``.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise InvalidRequestError(
            f"{without_credentials(address)} is not an HDFS address: write hdfs://host:port/path."
        )
    scheme, host, port, below = match[1].lower(), match[2], int(match[3] or 0), match[4] or ""
    segments = [segment for segment in below.split("/") if segment]
    if not segments or any(segment in (".", "..") for segment in segments):
        raise InvalidRequestError(
            f"{address} cannot be opened: it is the root of the file system, or its path "
            "contains '.' or '..'. Write the full path of a directory below the root."
        )
    authority = f"{scheme}://{host}" + (f":{port}" if port else "")
    connect = _connector(authority, f"{scheme}://{host}" if host else "default", port)
    return RenameStorage(connect, authority), "/" + "/".join(segments)


def _connector(authority: str, host: str, port: int) -> Callable[[], FileSystem]:
    def connect() -> FileSystem:
        try:
            from pyarrow.fs import HadoopFileSystem

            return HadoopFileSystem(host, port)
        except (ImportError, OSError) as error:
            reason = str(error).split("\n")[0].rstrip(". ")
            if "libhdfs" in reason or "libjvm" in reason or isinstance(error, ImportError):
                raise InvalidRequestError(
                    f"{authority} needs Hadoop's client and Java ({reason}): set HADOOP_HOME,"
                    " JAVA_HOME and CLASSPATH=$(hadoop classpath --glob)."
                ) from error
            raise UnavailableError(
                f"Cannot connect to {authority}: {reason}. Check the address and the cluster."
            ) from error

    return connect

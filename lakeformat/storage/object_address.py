# SPDX-License-Identifier: Apache-2.0
"""Parses addresses in object stores, such as ``s3://bucket/path``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.shown import carries_secret, without_credentials

__all__ = ["OBJECT_SCHEMES", "ObjectAddress", "parse_object_address"]

_KINDS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
}
OBJECT_SCHEMES = frozenset(_KINDS)


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """The address of one bucket; the scheme is kept as the caller wrote it, such as ``s3a``."""

    scheme: str
    bucket: str
    host: str = ""
    """The part of an Azure address after the ``@``, such as ``account.dfs.core.windows.net``; else
    "".
    """

    @property
    def kind(self) -> str:
        """The service of the scheme: ``s3``, ``gs`` or ``azure``."""
        return _KINDS[self.scheme]

    @property
    def account(self) -> str:
        """The storage account in an Azure address; "" if the address names no account."""
        return self.host.partition(".")[0]

    def uri(self, path: str) -> str:
        """Return the address of a path in the bucket. As in other tools, no character is
        percent-encoded.
        """
        authority = f"{self.bucket}@{self.host}" if self.host else self.bucket
        return f"{self.scheme}://{authority}/{path.strip('/')}"


def parse_object_address(address: str) -> tuple[ObjectAddress, str]:
    """Return the bucket of an address, and the path in the bucket.

    The path is literal: a ``%3A`` in the directory of a partition is part of its name. An invalid
    address, or an address with credentials, raises ``InvalidRequestError``.
    """
    scheme, _, rest = address.partition(":")
    scheme = scheme.lower()
    if not rest.startswith("//"):
        raise InvalidRequestError(
            f"{without_credentials(address)} has no bucket: write {scheme}://bucket/path."
        )
    if carries_secret(rest):
        raise InvalidRequestError(
            f"{without_credentials(address)} seems to contain a password or a signature: remove it,"
            " and give the key in the options of docs/storage.md. If the address has no password,"
            " rename the part that looks like one, such as 'a:b:c@d' or '?token=a'"
        )
    authority, _, below = rest[2:].partition("/")
    bucket, _, host = authority.partition("@")
    if host and _KINDS[scheme] != "azure":
        # Elsewhere the text before an @ is a password: it is not printed.
        raise InvalidRequestError(
            f"An address {scheme}://…@… contains credentials: remove them, and give the key in the "
            "options of docs/storage.md."
        )
    if not re.fullmatch(r"[A-Za-z0-9$][A-Za-z0-9._-]*", bucket):
        raise InvalidRequestError(
            f"{without_credentials(address)} has no valid bucket name: write {scheme}://bucket/path."
        )
    if host and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:-]*", host):
        raise InvalidRequestError(
            f"{without_credentials(address)} has an invalid account after the @: write "
            "abfss://container@account.dfs.core.windows.net/path."
        )
    segments = [segment for segment in below.split("/") if segment]
    if any(segment in (".", "..") for segment in segments):
        raise InvalidRequestError(
            f"{without_credentials(address)} has a segment . or ..: write the full path."
        )
    return ObjectAddress(scheme, bucket, host), "/".join(segments)

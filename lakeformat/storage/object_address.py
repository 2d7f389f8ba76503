"""Addresses in object stores: ``s3://bucket/path`` and its like."""

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
    """One bucket, as somebody wrote it."""

    scheme: str
    bucket: str
    host: str = ""
    """Azure only: what follows the ``@``, ``account.dfs.core.windows.net``."""

    @property
    def kind(self) -> str:
        """The service behind the scheme: ``s3``, ``gs`` or ``azure``."""
        return _KINDS[self.scheme]

    @property
    def account(self) -> str:
        """The storage account an Azure address names, or nothing."""
        return self.host.partition(".")[0]

    def uri(self, path: str) -> str:
        """The address of a path in the bucket; as in every other tool nothing is encoded."""
        authority = f"{self.bucket}@{self.host}" if self.host else self.bucket
        return f"{self.scheme}://{authority}/{path.strip('/')}"


def parse_object_address(address: str) -> tuple[ObjectAddress, str]:
    """The bucket of an address and the path in it.

    The path is taken literally: a ``%3A`` in a partition's directory is part of its name.
    """
    scheme, _, rest = address.partition(":")
    scheme = scheme.lower()
    if not rest.startswith("//"):
        raise InvalidRequestError(
            f"{without_credentials(address)} has no bucket: write {scheme}://bucket/path."
        )
    if carries_secret(rest):
        raise InvalidRequestError(
            f"{without_credentials(address)} is a signed link: remove what follows the question"
            " mark and give the key in the options of docs/storage.md."
        )
    authority, _, below = rest[2:].partition("/")
    bucket, _, host = authority.partition("@")
    if host and _KINDS[scheme] != "azure":
        # Whatever stands before an @ elsewhere is a password: it is not repeated here.
        raise InvalidRequestError(
            f"An address {scheme}://…@… would carry credentials: remove them and use the options."
        )
    if not re.fullmatch(r"[A-Za-z0-9$][A-Za-z0-9._-]*", bucket):
        raise InvalidRequestError(
            f"{without_credentials(address)} has no bucket: write {scheme}://bucket/path."
        )
    if host and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:-]*", host):
        raise InvalidRequestError(f"{without_credentials(address)} has no account after the @.")
    segments = [segment for segment in below.split("/") if segment]
    if any(segment in (".", "..") for segment in segments):
        raise InvalidRequestError(
            f"{without_credentials(address)} has a segment . or ..: write the path out."
        )
    return ObjectAddress(scheme, bucket, host), "/".join(segments)

# SPDX-License-Identifier: Apache-2.0
"""The answers of a REST catalog about a table. No message shows their values: some are secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from requests import Response

from lakeformat.catalog.iceberg.catalog_files import Answer
from lakeformat.errors import CorruptTableError
from lakeformat.tables.json_file import NO_JSON

__all__ = ["read_answer"]


def read_answer(response: Response, subject: str) -> Answer:
    """Return the metadata file that an answer names, with the options for its storage."""
    try:
        members = response.json()
    except NO_JSON:
        raise CorruptTableError(
            f"{subject} is not JSON: check that the uri is that of a REST catalog"
        ) from None
    found = _object(members, subject)
    address = found.get("metadata-location")
    if not isinstance(address, str) or not address:
        raise CorruptTableError(
            f"{subject} names no metadata file (metadata-location): check the table in its catalog"
        )
    options = dict(_texts(found.get("config"), f"config of {subject}"))
    return Answer(address, options | _credentials(found, address, subject))


def _credentials(members: Mapping[str, Any], address: str, subject: str) -> dict[str, str]:
    """Return the credentials with the longest prefix of the address; they replace the config."""
    found: dict[str, str] = {}
    longest = -1
    for each in members.get("storage-credentials") or ():
        credential = _object(each, f"a credential of {subject}")
        prefix = str(credential.get("prefix", ""))
        if address.startswith(prefix) and len(prefix) > longest:
            longest = len(prefix)
            found = dict(_texts(credential.get("config"), f"a credential of {subject}"))
    return found


def _texts(value: object, subject: str) -> Mapping[str, str]:
    found = _object(value or {}, subject)
    if not all(isinstance(each, str) for each in found.values()):
        raise CorruptTableError(
            f"{subject} has a value that is not a string: ask the operators of the catalog"
        )
    return found


def _object(value: object, subject: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CorruptTableError(f"{subject} is not a JSON object: ask the operators of the catalog")
    return value

# SPDX-License-Identifier: Apache-2.0
"""Parses the answers of a REST catalog about a table.

Error messages never quote the options of an answer, because some are secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from requests import Response

from lakeformat.catalog.iceberg.catalog_files import Answer
from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.metadata.metadata_file import decode_metadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.json_file import NO_JSON

__all__ = ["read_answer", "read_published"]


def read_answer(response: Response, subject: str) -> Answer:
    """Return the address of the metadata file and the storage options in an answer.

    ``subject`` names the answer in errors, such as "the answer about table 'a.b'".
    """
    found = _members(response, subject)
    address = _address(found, subject)
    options = dict(_texts(found.get("config"), f"config of {subject}"))
    return Answer(address, options | _credentials(found, address, subject))


def read_published(response: Response, subject: str) -> tuple[str, TableMetadata]:
    """Return the address and the content of the metadata in an answer.

    ``subject`` names the answer in errors.
    """
    found = _members(response, subject)
    content = json.dumps(found.get("metadata")).encode()
    return _address(found, subject), decode_metadata(content, subject)


def _members(response: Response, subject: str) -> Mapping[str, Any]:
    try:
        return _object(response.json(), subject)
    except NO_JSON:
        raise CorruptTableError(
            f"{subject} is not JSON: check that the uri is that of a REST catalog"
        ) from None


def _address(members: Mapping[str, Any], subject: str) -> str:
    found = members.get("metadata-location")
    if not isinstance(found, str) or not found:
        raise CorruptTableError(
            f"{subject} names no metadata file (metadata-location): check the table in its catalog"
        )
    return found


def _credentials(members: Mapping[str, Any], address: str, subject: str) -> dict[str, str]:
    """Return the credentials for ``address``; empty if there are none.

    Each credential is for the addresses that begin with its prefix. If several are for ``address``,
    the one with the longest prefix is returned. It replaces options with the same keys in the
    member ``config`` of the answer.
    """
    found: dict[str, str] = {}
    longest = -1
    offered = members.get("storage-credentials") or []
    if not isinstance(offered, list):
        raise CorruptTableError(
            f"the credentials of {subject} are not a list: report this to the operators of the "
            "catalog"
        )
    for each in offered:
        credential = _object(each, f"a credential of {subject}")
        prefix = str(credential.get("prefix", ""))
        if address.startswith(prefix) and len(prefix) > longest:
            longest = len(prefix)
            found = dict(_texts(credential.get("config"), f"a credential of {subject}"))
    return found


def _texts(value: object, subject: str) -> Mapping[str, str]:
    found = _object(value or {}, subject)
    if wrong := [key for key, each in found.items() if not isinstance(each, str)]:
        raise CorruptTableError(
            f"{subject} has a value that is not a string, for the key {wrong[0]!r}: report this to "
            "the operators of the catalog"
        )
    return found


def _object(value: object, subject: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CorruptTableError(
            f"{subject} is not a JSON object: report this to the operators of the catalog"
        )
    return value

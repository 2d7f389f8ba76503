# SPDX-License-Identifier: Apache-2.0
"""Digests of files, to compare them without holding them in memory."""

from __future__ import annotations

import hashlib

from lakeformat.storage.base import Storage

__all__ = ["content_digest"]

_CHUNK = 8 << 20


def content_digest(storage: Storage, path: str) -> bytes:
    """Return the SHA-256 of a file, read in parts."""
    digest = hashlib.sha256()
    with storage.open_input(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()

# SPDX-License-Identifier: Apache-2.0
"""Tests, once per store and process, that a store refuses to create an existing file.

A store that ignores the condition of a write still reports success, and then two commits overwrite
each other. Only a test of the store itself is reliable, not a list of products and versions.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from lakeformat.errors import LakeError, NotFoundError, UnsupportedError
from lakeformat.storage.base import temporary_sibling

__all__ = ["REMEDY", "ProvesCreation", "RawStore", "require_proof"]

_log = logging.getLogger(__name__)

REMEDY = (
    "give a catalog of Paimon tables a lock (metastore=jdbc and lock.enabled=true); or, for tables"
    " of any format, set unsafe.single-writer=true if no other process ever writes this warehouse."
)


class RawStore(Protocol):
    """A store whose conditional write must be tested."""

    def uri(self, path: str) -> str: ...

    def create(self, path: str, content: bytes) -> bool:
        """Publish a file as ``Storage.create`` does, without a test of the store.

        Raise ``UnsupportedError`` if the store has no conditional write.
        """
        ...

    def read(self, path: str) -> bytes: ...

    def delete(self, path: str) -> None: ...


@runtime_checkable
class ProvesCreation(Protocol):
    """A storage that must be tested before its ``create`` is trusted."""

    def prove_creation(self, path: str) -> None:
        """Raise ``UnsupportedError`` if a test shows that the store of ``path`` lacks reliable
        conditional writes.
        """
        ...


_verdicts: dict[str, str | None] = {}
_probing = threading.Lock()


def require_proof(store: RawStore, identity: str, path: str, new_id: Callable[[], str]) -> None:
    """Raise ``UnsupportedError`` if a test shows that the store lacks reliable conditional writes.

    The result is kept in this process for ``identity``, which names the store. The test file is
    written beside ``path``, with a temporary file's name that contains ``new_id()``. Readers ignore
    a leftover, and orphan removal deletes it.
    """
    with _probing:
        if identity not in _verdicts:
            _verdicts[identity] = _probe(store, temporary_sibling(path, new_id()))
        fault = _verdicts[identity]
    if fault is not None:
        raise UnsupportedError(
            f"Cannot publish {store.uri(path)}: {fault}. To write here, {REMEDY}"
        )


def _probe(store: RawStore, path: str) -> str | None:
    """Return the defect of the store, as a clause for a message; None without a defect.

    Raise ``UnavailableError`` if the store does not answer.
    """
    try:
        return _race_against_myself(store, path)
    except UnsupportedError as error:
        return f"the store has no conditional write ({error})"
    finally:
        try:
            store.delete(path)
        except LakeError as error:
            _log.warning(
                "the test file %s is left over and does no harm: you can delete it. Its deletion "
                "failed: %s",
                *(store.uri(path), error),
            )


def _race_against_myself(store: RawStore, path: str) -> str | None:
    if not store.create(path, b"first") and not _has_first(store, path):
        return "the store refuses a conditional write although no object has the name"
    if store.create(path, b"second"):
        return "the store replaces an existing object, although the write requires that none exists"
    if store.read(path) != b"first":
        return "the store reports that it refused a write, but performed it"
    return None


def _has_first(store: RawStore, path: str) -> bool:
    """Return True if the first write was done although it was reported as refused.

    This happens if a proxy repeats the write: the store refuses the repeat.
    """
    try:
        return store.read(path) == b"first"
    except NotFoundError:
        return False

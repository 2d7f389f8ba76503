# SPDX-License-Identifier: Apache-2.0
"""The locks of tables: for commits, and for create, alter, rename, drop and repair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from lakeformat.catalog.names import BRANCH_PREFIX, TableName
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.storage import Held, LockedCreation, Storage
from lakeformat.storage.move_directory import mover
from lakeformat.storage.sql import SqlLock

__all__ = ["TableLocks"]


class TableLocks:
    """The locks of the tables of one catalog.

    ``enabled`` is the option ``lock.enabled``. ``enabled=None`` means that commits take the lock
    only on a storage that cannot rename directories.
    """

    def __init__(self, lock: SqlLock, enabled: bool | None) -> None:
        self._lock = lock
        self._enabled = enabled

    def hold(self, name: TableName) -> AbstractContextManager[Held]:
        """Lock a table for a create, alter, rename, drop or repair, even if ``lock.enabled`` is
        false.
        """
        return self._lock.hold(str(name))

    @contextmanager
    def hold_all(self, *names: TableName) -> Iterator[dict[TableName, Held]]:
        """Lock several tables, and yield the lock of each name.

        They are locked in the order of their names, so that two callers cannot block each other
        forever.
        """
        with ExitStack() as stack:
            yield {name: stack.enter_context(self.hold(name)) for name in sorted(names, key=str)}

    def publishing(self, storage: Storage, name: TableName) -> Storage:
        """Return the storage through which a table or a branch publishes snapshots.

        The storage takes the lock if ``lock.enabled`` or the kind of storage requires it.
        """
        if not self._is_needed(storage):
            return storage
        branch = "" if name.branch == MAIN_BRANCH else f"${BRANCH_PREFIX}{name.branch}"
        return LockedCreation(storage, self._lock, f"{name}{branch}")

    def creating(self, storage: Storage, held: Held) -> Storage:
        """Return the storage through which the holder of the lock ``held`` publishes snapshots.

        With the storage that ``publishing`` returns, the holder would wait for its own lock.
        """
        if not self._is_needed(storage):
            return storage
        return LockedCreation(storage, _HeldAlready(held), "")

    def _is_needed(self, storage: Storage) -> bool:
        """Return True if a commit to ``storage`` must take the lock.

        If ``lock.enabled`` is not set, a commit takes the lock only on a storage that cannot rename
        directories.
        """
        return mover(storage) is None if self._enabled is None else self._enabled


class _HeldAlready:
    """A lock that does nothing, because the caller already holds the real one."""

    def __init__(self, held: Held) -> None:
        self._held = held

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        yield self._held

# SPDX-License-Identifier: Apache-2.0
"""Renames both stores of a Mixed table, in steps that a repeated call completes.

Before the first rename the base store records the new name. The change store is renamed first, the
base store last. So if the process dies before the last rename, the table is still found under its
old name, and the record shows the new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.iceberg.pair_stores import new_change_store
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import AccessDeniedError, AlreadyExistsError, InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from lakeformat.mixed.stores.properties import (
    CHANGE_IDENTIFIER,
    RENAMED_TO,
    change_store_database,
    change_store_name,
)
from lakeformat.mixed.stores.store_pair import StorePair

__all__ = ["rename_pair"]


@dataclass(frozen=True, slots=True)
class _Rename:
    """The rename of the base store ``old`` and of its change store."""

    metastore: Metastore
    old: TableName
    new: TableName
    environment: Environment

    @property
    def new_change(self) -> TableName:
        return new_change_store(self.new)

    @property
    def new_identifier(self) -> str:
        return f"{self.new.database}.{self.new_change.table}"

    def base(self, name: TableName) -> TableHandle:
        return TableHandle(self.metastore.pointer(name), environment=self.environment)

    def is_recorded(self, *, with_identifier: bool) -> bool:
        """Return True if the base store records this rename.

        ``with_identifier`` also requires that the base store already names the new change store.
        """
        found = self.base(self.old).load().metadata.properties
        is_named = found.get(CHANGE_IDENTIFIER) == self.new_identifier
        return found.get(RENAMED_TO) == str(self.new) and (is_named or not with_identifier)

    def set(self, **properties: str) -> None:
        commit_metadata(self.base(self.old), lambda base: set_properties(base.metadata, properties))

    def forget(self, name: TableName) -> None:
        commit_metadata(
            self.base(name), lambda base: remove_properties(base.metadata, [RENAMED_TO])
        )


def rename_pair(
    metastore: Metastore, old: TableName, new: TableName, environment: Environment
) -> None:
    """Rename the Mixed table whose base store is ``old``; complete an interrupted rename.

    If the metastore refuses to rename the change store, the record of the rename is removed, and
    the metastore's error is raised.
    """
    metastore.require_renamable(old, new)
    new_change_store(new)  # raises for a name that no Mixed table can have
    rename = _Rename(metastore, old, new, environment)
    if not rename.is_recorded(with_identifier=True):
        _rename_change_store(rename)
        rename.set(**{CHANGE_IDENTIFIER: rename.new_identifier})
    metastore.rename_table(old, new)
    rename.forget(new)


def _rename_change_store(rename: _Rename) -> None:
    """Rename the change store, unless an interrupted call has already renamed it.

    Raise ``AlreadyExistsError`` if a table has the new name of the change store.
    """
    metastore, old = rename.metastore, rename.old
    properties = rename.base(old).load().metadata.properties
    name = change_store_name(properties, str(old)) or ""
    change = metastore.beside(old, name, change_store_database(properties))
    is_there = change.table in metastore.tables(change.database)
    if not is_there and rename.is_recorded(with_identifier=False):
        return
    StorePair(rename.base(old), metastore.pointer(change)).load()  # raises if it is no pair
    if rename.new_change.table in metastore.tables(rename.new.database):
        raise AlreadyExistsError(
            f"cannot rename '{old}' to '{rename.new}': its change store would become "
            f"'{rename.new_change}', but a table of this name exists. Choose another new "
            "name, or drop that table"
        )
    rename.set(**{RENAMED_TO: str(rename.new)})
    try:
        metastore.rename_table(change, rename.new_change)
    except (AccessDeniedError, InvalidRequestError):
        rename.forget(old)
        raise

# SPDX-License-Identifier: Apache-2.0
"""The base store and the change store of one table, loaded and checked together."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from lakeformat.errors import CorruptTableError, NotFoundError, TableReplacedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.types import Field
from lakeformat.mixed.stores.alter_record import altered_base, altered_change
from lakeformat.mixed.stores.properties import (
    BASE,
    CHANGE,
    CHANGE_IDENTIFIER,
    PRIMARY_KEY,
    RENAMED_TO,
    TABLE_STORE,
    VERSION_FIELD,
)
from lakeformat.mixed.stores.version_field import version_field

__all__ = ["LoadedPair", "StorePair"]


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """The metadata of both stores.

    The change store is loaded last, so it has every change that the loaded base store has not
    merged.
    """

    base: LoadedMetadata
    change: LoadedMetadata
    has_pending_alter: bool = False
    """True if the newest alteration is stored in only one store. ``load`` then applies it to the
    loaded metadata of the other store, too, so both ``base`` and ``change`` have it.
    """

    @property
    def key(self) -> tuple[Field, ...]:
        """The key columns, in the order of the key.

        An invalid property raises ``CorruptTableError``.
        """
        schema = self.base.metadata.schema
        names = _key_names(self.base)
        found = {each.name: each for each in schema.fields}
        if not names or (unknown := [name for name in names if name not in found]):
            wrong = f"names {unknown[0]!r}, which is not a column" if names else "names no column"
            raise CorruptTableError(
                f"the property {PRIMARY_KEY!r} of {self.base.places.uri} {wrong}. The columns are "
                f"{', '.join(found)}. Another program has changed the property, or renamed a key "
                "column: undo this change in both stores with that program"
            )
        return tuple(found[name] for name in names)

    @property
    def version(self) -> Field | None:
        """The version field: of two rows with one key, the row with the larger value is the newer
        one.

        None if transactions alone order the changes.
        """
        metadata = self.base.metadata
        return version_field(metadata.properties, metadata.schema, self.base.places.uri)


@dataclass(frozen=True, slots=True)
class StorePair:
    """The handles of both stores."""

    base: TableHandle
    change: MetadataPointer

    def load(self) -> LoadedPair:
        """Return the current metadata of both stores.

        Raise ``CorruptTableError`` if they are not a pair, and ``TableReplacedError`` if the table
        was detached from its change store.
        """
        found = self._load()
        if _first_difference(found) is not None:  # perhaps an alteration ended between both reads
            found = self._load()
            self._require_same_columns(found)
        return found

    def load_to_change(self) -> LoadedPair:
        """Return the current metadata of both stores for a writer, as ``load`` does.

        An unfinished alteration of another process is completed first.
        """
        found = self.load()
        if not found.has_pending_alter:
            return found
        self.complete_alter()
        return self.load()

    def complete_alter(self) -> None:
        """Apply the newest alteration to the store that lacks it."""
        change = replace(self.base, pointer=self.change)
        commit_metadata(self.base, lambda base: altered_base(base.metadata, change.load().metadata))
        commit_metadata(
            change, lambda found: altered_change(self.base.load().metadata, found.metadata)
        )

    def _load(self) -> LoadedPair:
        base = self.base.load()
        self._require_base(base)
        try:
            change = self.change.load()
        except NotFoundError:
            self._require_base(self.base.load())  # perhaps it was detached between both reads
            raise CorruptTableError(
                f"{self.base.uri} is the base store of a Mixed table, but its change store "
                f"{self._change_name(base)} does not exist: {self._way_out(base)}"
            ) from None
        self._require_role(base, change)
        if (later := altered_base(base.metadata, change.metadata)) is not None:
            return LoadedPair(replace(base, metadata=later), change, has_pending_alter=True)
        if (later := altered_change(base.metadata, change.metadata)) is not None:
            return LoadedPair(base, replace(change, metadata=later), has_pending_alter=True)
        return LoadedPair(base, change)

    def _require_base(self, base: LoadedMetadata) -> None:
        if base.metadata.properties.get(TABLE_STORE) != BASE:
            raise TableReplacedError(
                f"{self.base.uri} is no longer a Mixed table: it was detached from its change "
                "store since it was opened. Open it again, as the Iceberg table that it is now"
            )

    def _require_role(self, base: LoadedMetadata, change: LoadedMetadata) -> None:
        role = change.metadata.properties.get(TABLE_STORE)
        if role != CHANGE:
            raise CorruptTableError(
                f"{self.base.uri} names as its change store {self.change.uri}, which is not a "
                f"change store: its property {TABLE_STORE!r} is {role!r}, not {CHANGE!r}. Rename "
                f"that table, then {self._way_out(base)}"
            )
        keys = [_key_names(each) for each in (base, change)]
        if keys[0] != keys[1]:
            shown = [", ".join(each) or "none" for each in keys]
            raise CorruptTableError(
                f"the stores of the Mixed table {self.base.uri} have different keys: "
                f"{shown[0]} in the base store, {shown[1]} in the change store {self.change.uri}. "
                f"The property {PRIMARY_KEY!r} is set when a table is created, and must not be "
                "changed later. With the program that changed it, set the original value in both "
                "stores"
            )
        versions = [each.metadata.properties.get(VERSION_FIELD) for each in (base, change)]
        if versions[0] != versions[1]:
            shown = ["none" if each is None else repr(each) for each in versions]
            raise CorruptTableError(
                f"the stores of the Mixed table {self.base.uri} have different version fields: "
                f"{shown[0]} in the base store, {shown[1]} in the change store {self.change.uri}. "
                f"The property {VERSION_FIELD!r} is set when a table is created, and must not be "
                "changed later. With the program that changed it, set the original value in both "
                "stores"
            )

    def _require_same_columns(self, pair: LoadedPair) -> None:
        """Raise ``CorruptTableError`` if a column of the base store differs in the change store.

        The cause is a schema change that reached only one store.
        """
        field = _first_difference(pair)
        if field is None:
            return
        other = pair.change.metadata.schema.field(field.id)
        found = "no column" if other is None else f"{other.name!r} with the type {other.type}"
        raise CorruptTableError(
            f"the column with the id {field.id} is {field.name!r} with the type {field.type} in "
            f"the Mixed table {self.base.uri}, but {found} in its change store {self.change.uri}: "
            "a change of the schema reached only one store. With the program that made it, make "
            "the same change in the other store"
        )

    def _change_name(self, base: LoadedMetadata) -> str:
        """Return the URI of a missing change store.

        If the catalog no longer lists the store, its URI is unknown: return its name.
        """
        try:
            return self.change.uri
        except NotFoundError:
            return base.metadata.properties[CHANGE_IDENTIFIER]

    def _way_out(self, base: LoadedMetadata) -> str:
        renamed = base.metadata.properties.get(RENAMED_TO)
        if renamed is not None:
            return f"repeat the interrupted rename to {renamed!r}: rename_table completes it"
        places = base.places
        name = shlex.quote(places.catalog_name or ".".join(places.uri.rsplit("/", 2)[1:]))
        warehouse = places.warehouse_option
        key = base.metadata.properties.get(PRIMARY_KEY, "")
        return (
            "restore the change store from a backup. If there is none, its changes that were not "
            f"merged are lost: `lake --format iceberg detach {name} --abandon-changes{warehouse}` "
            "makes the base store an Iceberg table, and `lake --format iceberg adopt "
            f"{name} --primary-key {shlex.quote(key)}{warehouse}` gives it a new change store. To "
            "read the base store before that, call "
            f"lake.open_table({base.metadata_file!r})"
        )


def _key_names(loaded: LoadedMetadata) -> list[str]:
    text = loaded.metadata.properties.get(PRIMARY_KEY, "")
    return [name.strip() for name in text.split(",") if name.strip()]


def _first_difference(pair: LoadedPair) -> Field | None:
    theirs = {each.id: (each.name, each.type) for each in pair.change.metadata.schema.fields}
    for field in pair.base.metadata.schema.fields:
        if theirs.get(field.id) != (field.name, field.type):
            return field
    return None

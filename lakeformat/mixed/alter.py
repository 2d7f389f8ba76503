# SPDX-License-Identifier: Apache-2.0
"""Alters both stores of a Mixed table: the change store first, then the base store.

An alteration takes effect with the commit of the change store. If a process dies before the commit
of the base store, readers show the altered table, and the next write or alteration commits the base
store.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.alter.alter import altered, with_columns, with_properties
from lakeformat.iceberg.alter.changes import (
    Alteration,
    DroppedColumn,
    NewColumn,
    OptionalColumn,
    Path,
    RenamedColumn,
    WiderColumn,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.types import Field
from lakeformat.mixed.stores.alter_record import ALTERED, AlterRecord, adopted_columns
from lakeformat.mixed.stores.detaching import require_not_detaching
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.log_store import refuse_log_store
from lakeformat.mixed.stores.mixed_hive import HIVE_LOCATION
from lakeformat.mixed.stores.pair_properties import OF_PAIRS
from lakeformat.mixed.stores.properties import REPEATED_KEYS, VERSION_FIELD
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.stores.version_field import (
    OPTIMIZED_BY_AMORO,
    has_unique_keys,
    is_wider_version,
    require_properties_with_version,
)
from lakeformat.mixed.table_properties import require_valid_properties

__all__ = ["alter_pair"]

_OF_COLUMNS = ("table.event-time-field", "data-expire.field")
"""Properties of Amoro whose value is the name of a column."""
_ATTEMPTS = 5


class _AlteredMeanwhile(Exception):
    """Another program has altered the table since an alteration was planned."""


def alter_pair(pair: StorePair, alteration: Alteration) -> None:
    """Make all changes of ``alteration`` in both stores, or none if one of them is refused.

    A repeated call completes an alteration that was interrupted between the two commits. Raise
    ``InvalidRequestError`` for a column or property that cannot be changed, and
    ``CommitConflictError`` if other programs alter the table again and again.
    """
    pair.base.pointer.require_writable()
    digest = hashlib.sha256(repr(alteration).encode()).hexdigest()
    for _ in range(_ATTEMPTS):
        loaded = pair.load()
        if loaded.has_pending_alter:
            record = AlterRecord.of(pair.change.uri, loaded.change.metadata.properties)
            pair.complete_alter()
            if record is not None and record.digest == digest:
                return
        _adopt_columns(pair)
        try:
            is_altered = _alter_change_store(pair, pair.load(), alteration, digest)
        except _AlteredMeanwhile:
            continue
        if is_altered:
            pair.complete_alter()
        return
    raise CommitConflictError(
        f"{pair.base.uri} was altered by other programs in each of {_ATTEMPTS} attempts; nothing "
        "was changed. Repeat the call"
    )


def _adopt_columns(pair: StorePair) -> None:
    """Give the base store the columns of the change store, if only the change store was altered.

    An alteration by another program may reach only the change store.
    """
    change = pair.change.load().metadata
    commit_metadata(pair.base, lambda base: adopted_columns(base.metadata, change))


def _alter_change_store(
    pair: StorePair, loaded: LoadedPair, alteration: Alteration, digest: str
) -> bool:
    """Commit the altered change store; return False if the alteration changes nothing.

    Raise ``_AlteredMeanwhile`` if another program has altered the table since it was ``loaded``.
    """
    _require_allowed(pair.base.uri, loaded, alteration)
    base = _with_uses_of_both(loaded)
    wanted = altered(base, pair.base.uri, alteration, loaded.change.metadata.last_column_id)
    names = {*wanted.properties.items()} ^ {*base.properties.items()}
    properties = {name: wanted.properties.get(name) for name, _ in names}
    properties |= {**alteration.properties}
    if has_unique_keys(wanted.properties) and not has_unique_keys(base.properties):
        properties[REPEATED_KEYS] = "true"
    environment = pair.base.environment
    record = AlterRecord(
        environment.new_id(), base.current_schema_id, tuple(sorted(properties)), digest
    )

    def change(found: LoadedMetadata) -> TableMetadata | None:
        require_not_detaching(found)
        if not _is_as_planned(loaded, pair.base.load(), found):
            raise _AlteredMeanwhile
        metadata = found.metadata
        hidden = tuple(each for each in metadata.schema.fields if each.id == FILE_OFFSET.id)
        columns = (*wanted.schema.fields, *hidden)
        result = with_columns(metadata, columns, wanted.last_column_id)
        result = with_properties(result, properties)
        if result is metadata and wanted is base:
            return None
        return with_properties(result, {ALTERED: record.to_text()})

    handle = replace(pair.base, pointer=pair.change)
    return commit_metadata(handle, change, planned=loaded.change).is_published


def _with_uses_of_both(loaded: LoadedPair) -> TableMetadata:
    """Return the metadata of the base store with the partition specs and sort orders of both
    stores.

    With these, ``altered`` refuses to drop a column that either store needs.
    """
    base, change = loaded.base.metadata, loaded.change.metadata
    return replace(
        base,
        partition_specs=(*base.partition_specs, *change.partition_specs),
        sort_orders=(*base.sort_orders, *change.sort_orders),
    )


def _is_as_planned(plan: LoadedPair, base: LoadedMetadata, change: LoadedMetadata) -> bool:
    return all(
        (now.metadata.schema.fields, now.metadata.properties.get(ALTERED))
        == (then.metadata.schema.fields, then.metadata.properties.get(ALTERED))
        for now, then in ((base, plan.base), (change, plan.change))
    )


def _require_allowed(table: str, loaded: LoadedPair, alteration: Alteration) -> None:
    """Raise ``InvalidRequestError`` for a change that would make the table unsound.

    Such a change could, for example, change the hashes of keys or the order of rows. Raise
    ``UnsupportedError`` for properties of a LogStore.
    """
    if loaded.version is not None:
        _require_kept_version(table, loaded.version, alteration)
    key = {each.name for each in loaded.key}
    for change in alteration.columns:
        name = change.path[0]
        if name in key and len(change.path) == 1:
            _require_kept_key(table, change)
        new = change.name if isinstance(change, RenamedColumn) else change.path[-1]
        if isinstance(change, NewColumn | RenamedColumn) and new == FILE_OFFSET.name:
            raise InvalidRequestError(
                f"a column of {table} cannot be named {new!r}, because the change store of a Mixed "
                "table has a hidden column of this name: choose another name"
            )
        if isinstance(change, DroppedColumn | RenamedColumn):
            _require_not_named(table, loaded.base.metadata, change.path)
    refuse_log_store(alteration.properties)
    for name in alteration.properties:
        if name in OF_PAIRS:
            raise InvalidRequestError(
                f"the property {name!r} of {table} cannot be changed, because only operations on "
                "both stores, such as rename_table, set it: leave it out"
            )
        if name == HIVE_LOCATION:
            raise InvalidRequestError(
                f"the property {name!r} of {table} cannot be set, because it marks a Mixed-Hive "
                "table, which this library does not open: leave it out"
            )
        if name == VERSION_FIELD:
            raise InvalidRequestError(
                f"the property {name!r} of {table} cannot be changed. The stored deletes have the "
                "values of the old version field, or no version. Create a new table with the "
                "property that you want, and copy the rows to it"
            )
    given = alteration.properties.items()
    require_valid_properties({name: value for name, value in given if value is not None})


def _require_kept_key(table: str, change: object) -> None:
    """Raise ``InvalidRequestError`` if the change drops, renames or widens a key column, or makes
    it nullable.
    """
    refused = {
        DroppedColumn: ("be dropped", "it identifies rows"),
        RenamedColumn: ("be renamed", "programs that write the table find the key by its name"),
        WiderColumn: ("get another type", "the same values could have other hashes"),
        OptionalColumn: ("become nullable", "a row without a key cannot be replaced"),
    }
    if (found := refused.get(type(change))) is not None:
        assert isinstance(change, DroppedColumn | RenamedColumn | WiderColumn | OptionalColumn)
        raise InvalidRequestError(
            f"the key column {change.path[0]!r} of {table} cannot {found[0]}, because {found[1]}: "
            "copy the rows to a new table with the wanted key"
        )


def _require_kept_version(table: str, version: Field, alteration: Alteration) -> None:
    """Raise ``InvalidRequestError`` if the alteration drops or renames the version field, changes
    the order of its values, or sets a property that does not fit a table with a version field.
    """
    for change in alteration.columns:
        if change.path != (version.name,):
            continue
        is_lost = isinstance(change, DroppedColumn | RenamedColumn)
        if is_lost or (isinstance(change, WiderColumn) and not is_wider_version(change.type)):
            raise InvalidRequestError(
                f"column {version.name!r} of {table} cannot be dropped, renamed or given this "
                f"type, because the property {VERSION_FIELD!r} names it and its values order the "
                "rows of a key: copy the rows to a new table"
            )
    given = {**alteration.properties}
    if given.get(OPTIMIZED_BY_AMORO, "false") is None:
        given[OPTIMIZED_BY_AMORO] = "true"  # Amoro's default
    set_ones = {name: value for name, value in given.items() if value is not None}
    require_properties_with_version(set_ones, version.name)


def _require_not_named(table: str, metadata: TableMetadata, path: Path) -> None:
    """Raise ``InvalidRequestError`` if a property that only Amoro reads names the column."""
    for name in _OF_COLUMNS:
        if metadata.properties.get(name) == ".".join(path):
            raise InvalidRequestError(
                f"column {'.'.join(path)!r} of {table} cannot be dropped or renamed, because the "
                f"property {name!r} names it: set that property to another column, or remove it, "
                "in an alteration before this one"
            )

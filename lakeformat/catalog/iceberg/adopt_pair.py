# SPDX-License-Identifier: Apache-2.0
"""Makes an Iceberg table the base store of a Mixed table, and creates its change store.

The change store is created first; then a commit to the table makes it a base store. If the process
dies between these two steps, readers still see an Iceberg table. A repeated call completes the
adoption.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.iceberg.new_pair import required_keys
from lakeformat.catalog.iceberg.pair_stores import new_change_store
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from lakeformat.mixed.adopt.adopt import Adoption, AdoptReport, plan_adoption, publish_adoption
from lakeformat.mixed.adopt.change_store import change_metadata
from lakeformat.mixed.adopt.detach import release_base
from lakeformat.mixed.stores.detaching import DETACHING
from lakeformat.mixed.stores.properties import (
    CHANGE_IDENTIFIER,
    PRIMARY_KEY,
    TABLE_STORE,
    is_keyed_store,
)
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.type_rules import is_list

__all__ = ["adopt_pair"]


def adopt_pair(
    metastore: Metastore,
    name: TableName,
    key: Sequence[str] | None,
    environment: Environment,
    *,
    dry_run: bool,
) -> AdoptReport:
    """Make the Iceberg table ``name`` a Mixed table with the key columns ``key``.

    If ``key`` is None, the key is the identifier fields of the table. A Mixed table with this key
    is not changed; one with another key raises ``AlreadyExistsError``.
    """
    handle = TableHandle(metastore.pointer(name), environment=environment)
    loaded = handle.load()
    wanted = _key(loaded.metadata, name, key)
    change = new_change_store(name)
    if is_keyed_store(loaded.metadata.properties):
        _require_same_pair(loaded.metadata, name, wanted)
        return AdoptReport(
            table=str(name),
            change_store=loaded.metadata.properties[CHANGE_IDENTIFIER],
            primary_key=tuple(wanted),
            rows=None,
            dry_run=dry_run,
        )
    required_keys(loaded.metadata.schema.arrow_schema(), wanted)  # raises for a name that is no key
    adoption = plan_adoption(handle, loaded, wanted)
    found = _load(metastore, change, name)
    if found is not None:
        _require_own(change, found, adoption)
    if not dry_run:
        _publish(metastore, name, change, adoption, exists=found is not None)
    return AdoptReport(
        table=str(name),
        change_store=str(change),
        primary_key=tuple(wanted),
        rows=adoption.rows,
        made_required=adoption.made_required,
        dry_run=dry_run,
    )


def _publish(
    metastore: Metastore, name: TableName, change: TableName, adoption: Adoption, *, exists: bool
) -> None:
    """Create the change store unless it exists, then make the table its base store.

    If the second step certainly failed, the new change store is dropped. If another
    process drops the change store meanwhile, ``CommitConflictError`` is raised, and the
    table is an Iceberg table as before.
    """

    is_made = not exists and metastore.make_table(
        change, lambda location: _described(adoption, location)
    )

    def discard() -> None:
        if is_made:
            with suppress(LakeError):
                _drop_unless_used(metastore, name, change, adoption.handle)

    with kept_if_published(discard):
        made = _load(metastore, change, name)
        if made is None:
            raise _dropped(change)
        _require_own(change, made, adoption)  # a service may have assigned other ids
        publish_adoption(adoption, f"{change.database}.{change.table}")
    made = _load(metastore, change, name)
    if made is None or DETACHING in made.properties:
        base = adoption.handle
        release_base(base, base.load(), str(name))
        raise _dropped(change)


def _drop_unless_used(
    metastore: Metastore, name: TableName, change: TableName, base: TableHandle
) -> None:
    """Drop the change store of a failed adoption, unless another process has adopted the table.

    The store is marked first: it then takes no changes, and another process that finds the mark
    after its own commit undoes its adoption.
    """
    store = TableHandle(metastore.pointer_beside(change, name), environment=base.environment)

    def marked(found: LoadedMetadata) -> TableMetadata:
        if found.metadata.snapshots:
            raise CommitConflictError(f"the change store '{change}' has changes already")
        return set_properties(found.metadata, {DETACHING: str(name)})

    commit_metadata(store, marked)
    if TABLE_STORE in base.load().metadata.properties:
        commit_metadata(store, lambda found: remove_properties(found.metadata, [DETACHING]))
    else:
        metastore.remove_new_table(change)


def _dropped(change: TableName) -> CommitConflictError:
    return CommitConflictError(
        f"the change store '{change}' is missing: another process dropped it meanwhile, or its "
        "files are missing and only its entry in the catalog exists. The table to adopt is an "
        "Iceberg table as before: repeat the call. If it fails again, remove the entry with `lake "
        f"--format iceberg drop-table {change}`, then repeat the call"
    )


def _described(adoption: Adoption, location: str) -> TableMetadata:
    return change_metadata(
        adoption.loaded.metadata,
        adoption.names,
        location,
        number=adoption.number,
        more=adoption.more,
        environment=adoption.handle.environment,
    )


def _key(metadata: TableMetadata, name: TableName, given: Sequence[str] | None) -> list[str]:
    """Return the names of the key columns: ``given``, or the identifier fields if ``given`` is
    None.

    Raise ``InvalidRequestError`` for an empty key, for a str, and for a table without identifier
    fields.
    """
    if given is not None and (not given or not is_list(given)):
        without_key = (
            "A Mixed table without a key has no change store: it is an ordinary Iceberg table, so "
            f"there is nothing to adopt in '{name}'"
        )
        raise InvalidRequestError(
            f"primary_key must be a list with one or more columns, got {given!r}"
            + ("" if given else f". {without_key}")
        )
    if given is not None:
        return [*given]
    schema = metadata.schema
    found = [schema.name_of(each) or str(each) for each in schema.identifier_field_ids]
    if not found:
        raise InvalidRequestError(
            f"table '{name}' has no identifier fields that could be its key: name the columns in "
            "primary_key"
        )
    return found


def _require_same_pair(metadata: TableMetadata, name: TableName, key: Sequence[str]) -> None:
    """Raise ``AlreadyExistsError`` unless the table is the base store of a pair with this key."""
    found = metadata.properties.get(PRIMARY_KEY, "").split(",")
    if metadata.properties.get(TABLE_STORE) != "base":
        raise AlreadyExistsError(
            f"table '{name}' is already the change store of a Mixed table, so it cannot be "
            "adopted: open the Mixed table by the name of its base store"
        )
    if found == [*key]:
        return
    raise AlreadyExistsError(
        f"table '{name}' is already the base store of a Mixed table with the key "
        f"{', '.join(found)}, not {', '.join(key)}: to give it another key, detach it first, with "
        f"detach_table({str(name)!r}) or `lake --format iceberg detach {name}`"
    )


def _load(metastore: Metastore, change: TableName, base: TableName) -> TableMetadata | None:
    try:
        return metastore.pointer_beside(change, base).load().metadata
    except NotFoundError:
        return None


def _require_own(change: TableName, found: TableMetadata, adoption: Adoption) -> None:
    """Raise an error unless ``found`` is an empty change store that fits the adopted table.

    Raise ``AlreadyExistsError`` if ``found`` is another table, if it has rows, or if an interrupted
    detach or a failed adoption left it. Raise ``UnsupportedError`` if its columns, partitions, key
    or sequence numbers differ.
    """
    if (detaching := found.properties.get(DETACHING)) is not None:
        raise AlreadyExistsError(
            f"table '{change}' is the change store that an interrupted detach of {detaching!r}, or "
            f"a failed adoption, has left: run detach_table({detaching!r}) or `lake --format "
            f"iceberg detach {detaching}`, then repeat the call"
        )
    wanted = _described(adoption, found.location)
    if found.snapshots or found.properties.get(TABLE_STORE) != wanted.properties[TABLE_STORE]:
        reason = "it has rows" if found.snapshots else "it is not a change store"
        raise AlreadyExistsError(
            f"table '{change}' has the name of the change store, but is not an empty change store "
            f"({reason}): drop or rename '{change}', or rename the table to adopt"
        )
    differing = [
        what
        for what, there, mine in (
            ("column ids", _columns(found), _columns(wanted)),
            ("partitions", _partitions(found), _partitions(wanted)),
            ("key", found.properties.get(PRIMARY_KEY), wanted.properties[PRIMARY_KEY]),
            ("sequence numbers", found.last_sequence_number >= adoption.number, True),
        )
        if there != mine
    ]
    if differing:
        raise UnsupportedError(
            f"the change store '{change}' does not have the {' and '.join(differing)} that the "
            "table needs: an earlier adoption left it, or the catalog assigns its own values. Drop "
            f"'{change}' and repeat the call. If it fails again, write the rows to a new Mixed "
            "table"
        )


def _columns(metadata: TableMetadata) -> list[tuple[object, ...]]:
    return [(each.id, each.name, each.type) for each in metadata.schema.fields]


def _partitions(metadata: TableMetadata) -> list[tuple[object, ...]]:
    spec = metadata.spec_of(metadata.default_spec_id)
    return [(each.source_ids, each.transform, each.name) for each in spec.fields]

# SPDX-License-Identifier: Apache-2.0
"""A table that a job creates if it does not exist, and drops if it gets no rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    UnavailableError,
)

if TYPE_CHECKING:
    from lakeformat import Catalog, Table

__all__ = ["dropping_if_empty", "identifying_columns", "refuse_contradiction"]

_log = logging.getLogger(__name__)
_KEY_OPTIONS = {"primary-key": "primary_key", "partition": "partition_by"}


class _NewTable(Protocol):
    """The keys of a request that describe a new table."""

    @property
    def table(self) -> str: ...
    @property
    def primary_key(self) -> Sequence[str] | None: ...
    @property
    def partition_by(self) -> Sequence[str] | None: ...
    @property
    def table_options(self) -> Mapping[str, str] | None: ...


def refuse_contradiction(table: Table, wanted: _NewTable) -> None:
    """Raise InvalidRequestError if an existing table differs from the one to create."""
    is_paimon = table.format == "paimon"
    if differences := [*(_differences(table, wanted) if is_paimon else _of_iceberg(table, wanted))]:
        raise InvalidRequestError(
            f"table {wanted.table!r} exists and contradicts the request: {'; '.join(differences)}. "
            "Nothing was written: correct the request, leave out what describes a new table, or "
            f"drop the table (lake drop-table {wanted.table})"
        )


def _differences(table: Table, wanted: _NewTable) -> Iterator[str]:
    schema, asked = table.schema, dict(wanted.table_options or {})
    keys = {
        name: asked.pop(option).replace(" ", "").split(",")
        for option, name in _KEY_OPTIONS.items()
        if option in asked
    }
    there = {"primary_key": [*schema.primary_keys], "partition_by": [*schema.partition_keys]}
    for name in there:
        if (given := getattr(wanted, name)) is not None:
            keys[name] = [*given]
    for name in keys:
        if there[name] != keys[name]:
            yield _difference(name, there[name], keys[name])
    for key, (current, value) in schema.table_options.differing(asked).items():
        yield _difference(f"option {key!r}", current, value)


def _of_iceberg(table: Any, wanted: _NewTable) -> Iterator[str]:
    from lakeformat.iceberg.create.transform_terms import partition_text

    there = sorted(identifying_columns(table))
    if wanted.primary_key is not None and sorted(wanted.primary_key) != there:
        yield _difference("primary_key", there, [*wanted.primary_key])
    asked = wanted.partition_by
    if asked is not None and [*map(partition_text, asked)] != table.partition_by:
        yield _difference("partition_by", table.partition_by, [*asked])
    properties = {**table.properties, "format-version": str(table.format_version)}
    for key, value in (wanted.table_options or {}).items():
        if properties.get(key) != value:
            yield _difference(f"option {key!r}", properties.get(key), value)


def identifying_columns(table: Any) -> list[str]:
    """Return the key columns of a Mixed table, or the identifier fields of an Iceberg table."""
    if table.format == "mixed":
        return [*table.primary_key]
    schema = table.schema
    return [*map(schema.name_of, schema.identifier_field_ids)]


def _difference(what: str, there: object, asked: object) -> str:
    state = "not set" if there is None else repr(there)
    return f"{what} is {state} in the table and {asked!r} in the request"


@contextmanager
def dropping_if_empty(catalog: Catalog, name: str, existing: Table | None) -> Iterator[None]:
    """Let the block create a table unless it exists; drop it if the work fails before a commit.

    The table is kept if the outcome of a commit is unknown. If another run has opened it meanwhile,
    the commit of that run fails, and its retry creates the table again.
    """
    try:
        yield
    except (CommitOutcomeUnknownError, UnavailableError):
        raise
    except LakeError:
        if existing is None:
            with suppress(LakeError):
                if _drop_without_rows(catalog, name):
                    _log.info("dropped the new table %s, because it got no rows", name)
        raise


def _drop_without_rows(catalog: Any, name: str) -> bool:
    """Drop a table without a snapshot; return False if it has one."""
    table = catalog.table(name)
    if table.format == "iceberg":
        dropped: bool = catalog.drop_new_table(name)
        return dropped
    if table.latest_snapshot() is not None:
        return False
    catalog.drop_table(name)
    return True

# SPDX-License-Identifier: Apache-2.0
"""A table that a job creates if it does not exist: as requested, and not left behind empty."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    UnavailableError,
)

if TYPE_CHECKING:
    from lakeformat import Catalog, Table

__all__ = ["dropping_if_empty", "refuse_contradiction"]

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
    differences = [
        f"{name} is {there[name]} in the table and {keys[name]} in the request"
        for name in keys
        if there[name] != keys[name]
    ]
    for key, (current, value) in schema.table_options.differing(asked).items():
        state = "not set" if current is None else repr(current)
        differences.append(f"option {key!r} is {state} in the table and {value!r} in the request")
    if differences:
        raise InvalidRequestError(
            f"table {wanted.table!r} exists and contradicts the request: {'; '.join(differences)}. "
            "Nothing was written: correct the request, leave out what describes a new table, or "
            f"drop the table (lake drop-table {wanted.table})"
        )


@contextmanager
def dropping_if_empty(catalog: Catalog, name: str, existing: Table | None) -> Iterator[None]:
    """Inside, a table is created unless it exists; drop it if the work fails before a commit.

    The table is kept if the outcome of a commit is unknown. If another run has opened it
    meanwhile, its commit is refused, and its retry creates the table again.
    """
    try:
        yield
    except (CommitOutcomeUnknownError, UnavailableError):
        raise
    except LakeError:
        if existing is None:
            with suppress(LakeError):
                if catalog.table(name).latest_snapshot() is None:
                    catalog.drop_table(name)
                    _log.info("dropped the new table %s, because it got no rows", name)
        raise

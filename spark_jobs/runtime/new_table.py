# SPDX-License-Identifier: Apache-2.0
"""A table that a job creates if it does not exist, and drops again if the job fails before a
commit.
"""

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
from lakeformat.tables.wanted_table import WantedTable

if TYPE_CHECKING:
    from lakeformat import Catalog, Table

__all__ = ["dropping_if_empty", "refuse_contradiction"]

_log = logging.getLogger(__name__)


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
    """Raise ``InvalidRequestError`` if an existing table differs from the keys of the request that
    describe a new table.
    """
    asked = WantedTable(
        primary_key=wanted.primary_key,
        partition_by=wanted.partition_by,
        options=wanted.table_options or {},
    )
    if differences := table.contradictions(asked):
        raise InvalidRequestError(
            f"table {wanted.table!r} exists and contradicts the request: {'; '.join(differences)}. "
            "Nothing was written: correct the request, leave out the keys that describe a new "
            "table, or drop the table"
        )


@contextmanager
def dropping_if_empty(catalog: Catalog, name: str, existing: Table | None) -> Iterator[None]:
    """Drop the table ``name`` if the block creates it and then fails before a commit. ``existing``
    is the table if it existed before.

    The table is kept if the outcome of a commit is unknown, if the storage does not answer, if
    another run has written to the table, and after an error that is not a ``LakeError``. If another
    run has opened the table, but not yet written to it, the table is dropped. Then the commit of
    that run fails, and its retry creates the table again.
    """
    try:
        yield
    except (CommitOutcomeUnknownError, UnavailableError):
        raise
    except LakeError:
        if existing is None:
            with suppress(LakeError):
                if catalog.drop_new_table(name):
                    _log.info("dropped the new table %s, because it got no rows", name)
        raise

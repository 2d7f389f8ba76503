# SPDX-License-Identifier: Apache-2.0
"""System tables of an Iceberg table: its metadata as rows that can only be read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar, NoReturn

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.branch_history import history_of
from lakeformat.iceberg.choice import choose
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.iceberg.system_tables.registry import SystemTableDeclaration
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.results import Rows
from lakeformat.tables.table import offering_arguments
from lakeformat.types.closest import closest

__all__ = ["IcebergSystemTable"]


class IcebergSystemTable:
    """A system table: ``table.system_table("files").scan().to_arrow()``."""

    operations: ClassVar = frozenset({"scan"})

    def __init__(
        self,
        declaration: SystemTableDeclaration,
        load: Callable[[], LoadedMetadata],
        branch: str,
        of_tables: Collection[str],
    ) -> None:
        self._declaration = declaration
        self._load = load
        self._branch = branch
        self._of_tables = of_tables
        """The names of the attributes of an ``IcebergTable``."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raise ``UnsupportedError`` for an attribute of tables, such as ``write``.

        Raise ``AttributeError`` for any other name.
        """
        if not name.startswith("_") and name in self._of_tables:
            raise UnsupportedError(
                f"${self.name} of {self._load().places.uri} is a system table, which is read-only: "
                f"scan() returns its rows. Use the table itself for {name!r}"
            )
        raise AttributeError(f"a system table has no attribute {name!r}", name=name, obj=self)

    @property
    def name(self) -> str:
        """The name of the system table."""
        return self._declaration.name

    @property
    def location(self) -> str:
        """The location of the Iceberg table."""
        return self._load().places.uri

    @offering_arguments
    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        newest: bool = False,
    ) -> Rows:
        """Return the rows of the system table.

        A system table about a single snapshot shows the newest snapshot of the branch, or the
        chosen one. ``newest`` makes a Paimon table ignore its options ``scan.*``, which can choose
        a snapshot. An Iceberg table has no such options, so ``newest`` has no effect here.

        Raise ``InvalidRequestError`` for an unknown column. Raise it also if a snapshot is chosen,
        but the system table describes the whole table. Raise ``NotFoundError`` if the chosen
        snapshot does not exist.
        """
        is_asked = any(each is not None for each in (snapshot, tag, as_of))
        if is_asked and not self._declaration.of_snapshot:
            raise InvalidRequestError(
                f"${self.name} describes the whole table, not one snapshot: leave out 'snapshot', "
                "'tag' and 'as_of'"
            )
        loaded = self._load()
        chosen = None
        if self._declaration.of_snapshot:
            history = history_of(loaded.metadata, self._branch, loaded.places.uri)
            choice = choose(loaded, history, snapshot=snapshot, tag=tag, as_of=as_of)
            chosen = find_state(loaded.places, loaded.metadata, **choice).snapshot
        found = _project(self._declaration.rows(loaded, chosen), columns, self.name)
        return Rows(found.schema, lambda: _batches(found))


def _project(found: pa.Table, columns: Sequence[str] | None, name: str) -> pa.Table:
    if columns is None:
        return found
    unknown = [each for each in columns if each not in found.column_names]
    if unknown:
        raise InvalidRequestError(
            f"${name} has no column {unknown[0]!r}; its columns are {', '.join(found.column_names)}"
            f"{closest(unknown[0], found.column_names)}"
        )
    return found.select(list(columns))


def _batches(found: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from found.to_batches()

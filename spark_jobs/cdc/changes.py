# SPDX-License-Identifier: Apache-2.0
"""Changed rows with their kinds, from change messages of any format."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake

_log = logging.getLogger(__name__)

__all__ = [
    "MessageChanges",
    "OldRows",
    "Positions",
    "SourceTable",
    "arranged",
    "field_of",
    "joined_names",
    "updates_of",
]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MessageChanges:
    """Rows of one kind, each with a number that orders all rows of the same block of messages."""

    kind: str
    positions: Positions
    rows: pa.StructArray
    whole: pa.BooleanArray | None = None
    """Booleans, true for a row that is known to be whole, even if only its key has values."""


@dataclass(frozen=True, slots=True)
class OldRows:
    """The old row of each update, for sources whose old row has only the changed columns."""

    values: pa.StructArray | None
    nulls: pa.StructArray | None = None
    """Booleans, true for an old value that is NULL; None if no old value is NULL. In ``values``, a
    null can also mean that the column did not change.
    """

    def filter(self, mask: pa.Array) -> OldRows:
        """Return the old rows whose boolean in ``mask`` is true."""
        found = (None if each is None else each.filter(mask) for each in (self.values, self.nulls))
        return OldRows(*found)

    def has_null(self, count: int) -> pa.Array:
        """Return a boolean for each of ``count`` old rows, true if the row has a NULL."""
        marks = [] if self.nulls is None else self.nulls.flatten()
        known = (pc.fill_null(each, False) for each in marks)
        return reduce(pc.or_, known, pa.repeat(False, count))

    def before(self, name: str, after: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the values of a column before the updates, and a boolean for each, true if the
        update changed the value. ``after`` has the new values.

        If Arrow has inferred different types for the old and the new values, the returned values
        are null where nothing changed.
        """
        old = None if self.values is None else field_of(self.values, name)
        if old is None:
            old = pa.nulls(len(after), after.type)
        changed = pc.is_valid(old)
        if old.type != after.type or pa.types.is_null(old.type):
            return old, changed
        if not pa.types.is_nested(after.type):
            changed = pc.and_(changed, pc.fill_null(pc.not_equal(old, after), True))
        was_null = None if self.nulls is None else field_of(self.nulls, name)
        if was_null is not None:
            became_known = pc.and_(pc.fill_null(was_null, False), pc.is_valid(after))
            changed = pc.or_(changed, became_known)
        return pc.if_else(changed, old, after), changed


def arranged(
    parts: Iterable[MessageChanges],
) -> tuple[pa.Array, pa.StructArray, pa.Array] | None:
    """Return the kinds and the rows of all ``parts``, in the order of the messages, and a boolean
    for each row, true if it is known to be whole; None if there are no rows.
    """
    found = [part for part in parts if len(part.rows)]
    if not found:
        return None
    order = np.argsort(np.concatenate([part.positions for part in found]), kind="stable")
    kinds = pa.concat_arrays([pa.repeat(part.kind, len(part.rows)) for part in found])
    rows = pa.concat_arrays([part.rows for part in found])
    known = [pa.repeat(False, len(p.rows)) if p.whole is None else p.whole for p in found]
    return kinds.take(order), rows.take(order), pa.concat_arrays(known).take(order)


def field_of(table: pa.Table | pa.StructArray, name: str) -> pa.Array | None:
    """Return the member ``name`` of all messages as one array; None if it is missing or of Arrow's
    type ``null``.
    """
    if isinstance(table, pa.Table):
        if name not in table.schema.names:
            return None
        column = table[name]
        return column.combine_chunks() if not pa.types.is_null(column.type) else None
    if not pa.types.is_struct(table.type) or table.type.get_field_index(name) < 0:
        return None
    found = pc.struct_field(table, name)
    return None if pa.types.is_null(found.type) else found


def joined_names(parts: Sequence[pa.Array | None]) -> pa.Array | None:
    """Return each message's table name: the parts that are not null, joined by dots. The name is
    null if all parts of the message are null. Return None if all ``parts`` are None.
    """
    found = [part for part in parts if part is not None]
    if not found:
        return None
    has_name = reduce(pc.or_, map(pc.is_valid, found))
    # Arrow would leave out a row whose parts are all null.
    first = pc.if_else(has_name, found[0], "")
    names = pc.binary_join_element_wise(first, *found[1:], ".", null_handling="skip")
    return pc.if_else(has_name, names, None)


@dataclass(slots=True)
class SourceTable:
    """Selects the messages of one source table, by the table name in each message."""

    wanted: str | None = None
    """The name of the source table; None if all messages must be of the same table."""
    seen: set[str] = field(default_factory=set)
    """The source tables in the messages so far. If ``wanted`` is set, an empty name stands for
    messages that do not name their table.
    """

    def mask(self, names: pa.Array | None, path: str) -> pa.Array | None:
        """Return a boolean for each message, true if it is of the wanted table; None to read all
        messages.

        If ``wanted`` is None, raise ``InvalidRequestError`` for messages of a second table.
        ``path`` names the file in errors.
        """
        if names is None:
            return None
        if self.wanted is not None:
            return pc.fill_null(pc.equal(names, self.wanted), False)
        self.note({each for each in names.unique().to_pylist() if each is not None}, path)
        return None

    def note(self, names: set[str], path: str) -> None:
        """Add ``names`` to the source tables in ``seen``.

        If ``wanted`` is None and ``seen`` then has several tables, raise ``InvalidRequestError``,
        which names the file ``path``.
        """
        self.seen |= names
        if self.wanted is None and len(self.seen) > 1:
            tables = ", ".join(sorted(self.seen)[:5])
            raise lake.InvalidRequestError(
                f"the messages up to {path} belong to {len(self.seen)} tables ({tables}): choose "
                "one with key 'messages_of'"
            )

    def warn(self) -> None:
        """Log a warning if ``wanted`` is not among the tables in ``seen``, or if messages do not
        name their table.
        """
        if self.wanted is None:
            return
        tables = sorted(self.seen - {""})
        if tables and self.wanted not in self.seen:
            _log.warning(
                "no message is of the table %r (key 'messages_of'), so all were skipped. The "
                "source tables of the messages are %s: set 'messages_of' to one of these full "
                "names",
                self.wanted,
                ", ".join(map(repr, tables[:5])) + (", …" if len(tables) > 5 else ""),
            )
        if "" in self.seen:
            _log.warning(
                "skipping messages that do not name their source table. If all messages are of "
                "one table, leave out the key 'messages_of' to apply them"
            )


def updates_of(
    rows: pa.StructArray, old: OldRows, positions: Positions, keys: Sequence[str]
) -> list[MessageChanges]:
    """Return the changes of updates, for sources whose old row has only the changed columns.

    ``keys`` are the columns of the key and, in a Mixed table, of the partition. Each new row
    replaces the stored row with the same values in these columns. If an update changes one of these
    values, a delete of its old row is added.

    ``positions`` has one position for each update: that of the delete. The new row has the next
    position, even if there is no delete.
    """
    found = [MessageChanges("+U", positions + 1, rows)]
    if old.values is None or not keys:
        return found
    moved = pa.repeat(False, len(rows))
    columns = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    for name in keys:
        if name in columns:
            moved = pc.or_(moved, old.before(name, columns[name])[1])
    places = positions[moved.to_numpy(zero_copy_only=False)]
    if len(places):
        before = old.filter(moved)
        gone = [before.before(name, after.filter(moved))[0] for name, after in columns.items()]
        rows = pa.StructArray.from_arrays(gone, [*columns])
        found.append(MessageChanges("-D", places, rows, before.has_null(len(places))))
    return found

# SPDX-License-Identifier: Apache-2.0
"""Changed rows with their kinds, from change messages of any format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake

__all__ = [
    "MessageChanges",
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


def arranged(parts: Iterable[MessageChanges]) -> tuple[pa.Array, pa.StructArray] | None:
    """Return the kinds and the rows of all ``parts``, in the order of the messages; None if there
    are no rows.
    """
    found = [part for part in parts if len(part.rows)]
    if not found:
        return None
    order = np.argsort(np.concatenate([part.positions for part in found]), kind="stable")
    kinds = pa.concat_arrays([pa.repeat(part.kind, len(part.rows)) for part in found])
    rows = pa.concat_arrays([part.rows for part in found])
    return kinds.take(order), rows.take(order)


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
    """The source tables in the messages so far, if ``wanted`` is None."""

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

        Raise ``InvalidRequestError``, which names the file ``path``, if ``seen`` then has several.
        """
        self.seen |= names
        if len(self.seen) > 1:
            tables = ", ".join(sorted(self.seen)[:5])
            raise lake.InvalidRequestError(
                f"the messages up to {path} belong to {len(self.seen)} tables ({tables}): choose "
                "one with key 'messages_of'"
            )


def updates_of(
    rows: pa.StructArray, old: pa.StructArray | None, positions: Positions, keys: Sequence[str]
) -> list[MessageChanges]:
    """Return the changes of updates, for sources whose old row has only the changed columns.

    The new row replaces the old row of the same key. If an update changes the key, a delete of the
    old key is added, whose other columns have the new values. ``positions`` are the positions of
    these deletes; each new row has the next position.
    """
    found = [MessageChanges("+U", positions + 1, rows)]
    if old is None or not keys:
        return found
    before = {name: field_of(old, name) for name in keys}
    moved = np.zeros(len(rows), bool)
    columns = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    for name, value in before.items():
        if value is None or name not in columns:
            continue
        other = pc.fill_null(pc.not_equal(value, columns[name]), False)
        moved |= other.to_numpy(zero_copy_only=False)
        columns[name] = pc.coalesce(value, columns[name])
    if moved.any():
        gone = pa.StructArray.from_arrays([*columns.values()], fields=list(rows.type))
        found.append(MessageChanges("-D", positions[moved], gone.filter(pa.array(moved))))
    return found

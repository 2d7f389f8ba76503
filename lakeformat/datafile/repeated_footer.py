"""Tells the footer of a Parquet file of columns whose pages are those of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from lakeformat.datafile.repeated_columns import RepeatedColumn
from lakeformat.datafile.repeated_pages import CopiedPages
from lakeformat.datafile.thrift_compact import (
    Kind,
    Struct,
    Values,
    number_in,
    parse_struct,
    serialize_number,
    serialize_struct,
    serialize_structs,
)
from lakeformat.datafile.thrift_walk import find_member, member_places, number_at, structs_at

__all__ = ["with_repeated"]

# Numbers of members: of the footer,
_SCHEMA, _ROW_GROUPS, _ORDERS = 2, 4, 7
# of an element of the schema,
_NAME, _CHILDREN, _FIELD_ID = 4, 5, 9
# of a row group,
_COLUMNS, _BYTES, _GROUP_OFFSET, _STORED_BYTES = 1, 2, 5, 6
# of a column chunk,
_META_DATA = 3
# and of its description.
_PATH, _RAW_SIZE, _SIZE, _DATA, _DICTIONARY = 3, 6, 7, 9, 11


def with_repeated(
    content: bytes, columns: Sequence[RepeatedColumn], copies: Sequence[Sequence[CopiedPages]]
) -> bytes:
    """The footer with the ``columns``, as if they had been written like all others.

    ``copies`` are those of each row group, of each column. What stays as it is is copied as bytes:
    there are as many column chunks as make a tree of them slow.
    """
    schema_at, _ = find_member(content, 0, _SCHEMA)
    groups_at, _ = find_member(content, 0, _ROW_GROUPS)
    elements, schema_end = structs_at(content, schema_at)
    groups, groups_end = structs_at(content, groups_at)
    # Members are numbered by steps: behind the row groups the walk begins anew at their number.
    orders_at, _ = find_member(content, groups_end, _ORDERS - _ROW_GROUPS)
    orders, orders_end = structs_at(content, orders_at)
    new_orders = [orders[column.source] for column in columns]
    return b"".join(
        (
            content[:schema_at],
            serialize_structs(_elements(elements, columns)),
            content[schema_end:groups_at],
            serialize_structs(_groups(groups, columns, copies)),
            content[groups_end:orders_at],
            serialize_structs(_inserted(orders, new_orders, columns)),
            content[orders_end:],
        )
    )


def _inserted(
    items: Sequence[bytes], new: Sequence[bytes], columns: Sequence[RepeatedColumn]
) -> list[bytes]:
    """What there is of each column, that of the new ones where they belong."""
    found = [*items]
    for item, column in reversed([*zip(new, columns, strict=True)]):
        found.insert(column.before, item)
    return found


def _elements(elements: Sequence[bytes], columns: Sequence[RepeatedColumn]) -> list[bytes]:
    root, *elements = elements
    members = parse_struct(root)
    _add(members, _CHILDREN, len(columns))
    new = []
    for column in columns:
        element = parse_struct(elements[column.source])
        element[_NAME] = Kind.BINARY, column.name.encode()
        element[_FIELD_ID] = Kind.I32, column.field_id
        new.append(serialize_struct(element))
    return [serialize_struct(members), *_inserted(elements, new, columns)]


def _groups(
    groups: Sequence[bytes],
    columns: Sequence[RepeatedColumn],
    copies: Sequence[Sequence[CopiedPages]],
) -> list[bytes]:
    found, moved_by = [], 0
    for group, copied in zip(groups, copies, strict=True):
        found.append(_group(group, columns, copied, moved_by))
        moved_by += sum(each.size for each in copied)
    return found


def _group(
    group: bytes, columns: Sequence[RepeatedColumn], copied: Sequence[CopiedPages], moved_by: int
) -> bytes:
    """A row group that begins so much later than Arrow thinks."""
    chunks_at, _ = find_member(group, 0, _COLUMNS)
    chunks, chunks_end = structs_at(group, chunks_at)
    # Without its columns it is short enough for a tree.
    no_chunks = serialize_structs([])
    members = parse_struct(group[:chunks_at] + no_chunks + group[chunks_end:])
    _add(members, _GROUP_OFFSET, moved_by)
    moves = _moves(len(chunks), columns, copied, moved_by)
    moved = [_moved(chunk, distance) for chunk, distance in zip(chunks, moves, strict=True)]
    new = []
    for column, copy in zip(columns, copied, strict=True):
        chunk = parse_struct(_moved(moved[column.source], copy.distance))
        described = cast(Struct, chunk[_META_DATA][1])
        described[_PATH] = Kind.LIST, Values(Kind.BINARY, [column.name.encode()])
        _add(members, _BYTES, number_in(described, _RAW_SIZE))
        _add(members, _STORED_BYTES, number_in(described, _SIZE))
        new.append(serialize_struct(chunk))
    rest = serialize_struct(members)[chunks_at + len(no_chunks) :]
    return group[:chunks_at] + serialize_structs(_inserted(moved, new, columns)) + rest


def _moves(
    count: int,
    columns: Sequence[RepeatedColumn],
    copied: Sequence[CopiedPages],
    moved_by: int,
) -> list[int]:
    """How much later each chunk begins than Arrow thinks."""
    moves = [moved_by] * count
    for column, copy in zip(columns, copied, strict=True):
        for number in range(column.before, count):
            moves[number] += copy.size
    return moves


def _moved(chunk: bytes, distance: int) -> bytes:
    if not distance:
        return chunk
    described, _ = find_member(chunk, 0, _META_DATA)
    places, _ = member_places(chunk, described)
    for member in (_DICTIONARY, _DATA):  # the last first, as what follows it moves
        if (place := places.get(member)) is not None:
            number, end = number_at(chunk, place)
            chunk = chunk[:place] + serialize_number(number + distance) + chunk[end:]
    return chunk


def _add(members: Struct, number: int, more: int) -> None:
    kind, _ = members[number]
    members[number] = kind, number_in(members, number) + more

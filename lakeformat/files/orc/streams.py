# SPDX-License-Identifier: Apache-2.0
"""Checks the streams of an ORC file that Arrow's reader trusts.

A negative length of a text, a list or a map ends the process, as does a null key of a map. A length
that is too large exhausts the memory, and an invalid decimal scale keeps the reader busy without
end. Lengths may be stored as signed differences, so one wrong bit can make a length negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO

from lakeformat.files.orc.message import Message, parse_message, parts, single
from lakeformat.files.orc.runs import RunSummary, summarise_runs
from lakeformat.files.orc.tail import (
    CHUNK_HEADER,
    UNCOMPRESSED,
    OrcTail,
    Stripe,
    unpack,
    writer_zones,
)
from lakeformat.types.count_text import counted

__all__ = ["check_streams"]

MAX_LENGTH = 2**31 - 1
"""The largest length of a text or list: Arrow counts bytes and elements in 32 bits."""
MAX_SCALE = 38
FEW = 1 << 20
"""The largest sum of lengths, in elements or bytes, that is accepted without a check against the
file: wrong lengths up to this sum need little memory.
"""
VALUES_PER_BYTE = 1024
"""An upper bound for the number of values that one byte of a stream encodes. For example, a run
of two bytes can repeat eight flags 130 times: these are 1040 values, 520 for each byte.
"""

_TEXTS, _LIST, _MAP, _UNION, _DECIMAL, _LAST_KIND = (7, 8, 16, 17), 10, 11, 13, 14, 18
_PRESENT, _DATA, _LENGTH, _DICTIONARY, _SECONDARY = 0, 1, 2, 3, 5
_DIRECT, _DICTIONARY_1, _DIRECT_2, _DICTIONARY_2 = range(4)

# Member numbers of a stripe's footer, a stream, an encoding.
_STREAMS, _ENCODINGS = 1, 2
_STREAM_KIND, _STREAM_COLUMN, _STREAM_LENGTH = 1, 2, 3
_ENCODING_KIND, _DICTIONARY_SIZE = 1, 2


@dataclass(frozen=True, slots=True)
class _ByteRange:
    start: int
    size: int


def check_streams(stream: IO[bytes], tail: OrcTail, columns: Sequence[str]) -> set[str]:
    """Check the streams of ``columns``; return the time zones that the stripes name.

    Raise ``ValueError`` for lengths, scales or dictionary sizes that no valid file has, and for
    damaged streams. Raise ``ValueError`` or ``IndexError`` if the footer of a stripe is damaged.
    """
    wanted = [number for column in columns for number in tail.subtree(column)]
    zones: set[str] = set()
    for stripe in tail.stripes:
        opened = _Stripe(stream, tail, stripe)
        zones |= opened.zones
        for number in wanted:
            opened.check(number)
    return zones


class _Stripe:
    """The streams of one stripe, by kind and type, and their checks."""

    def __init__(self, stream: IO[bytes], tail: OrcTail, stripe: Stripe) -> None:
        self._stream = stream
        self._tail = tail
        self._offset = stripe.start
        footer = self._read(_ByteRange(stripe.footer_start, stripe.footer_size))
        message = parse_message(footer)
        self.zones = writer_zones(message)
        self._encodings = [parse_message(part) for part in parts(message, _ENCODINGS)]
        if len(self._encodings) != len(tail.types):
            raise ValueError(
                f"the stripe at offset {stripe.start} has "
                f"{counted(len(self._encodings), 'encoding')} for "
                f"{counted(len(tail.types), 'type')}"
            )
        streams = (parse_message(part) for part in parts(message, _STREAMS))
        self._places = _places(streams, stripe)

    def check(self, number: int) -> None:
        """Raise ``ValueError`` if the streams of the type ``number`` have impossible values.

        Raise it also for a union or an unknown type, because no column of a table has such a type.
        The streams of types inside of this type are not checked.
        """
        kind = self._tail.types[number].kind
        if kind in _TEXTS:
            self._check_texts(number)
        elif kind in (_LIST, _MAP):
            if kind == _MAP and (_PRESENT, number + 1) in self._places:
                # Writers omit the flags if nothing is null, and map keys are never null.
                raise self._error(number, "a map with keys that may be null")
            found = self._lengths(number)
            below = [child for child in self._tail.below(number) if child != number]
            room = sum(self._room(place, exact=True) for place in self._all_of(below, found))
            self._require(found, room * VALUES_PER_BYTE, number)
        elif kind == _DECIMAL:
            scales = self._summary(_SECONDARY, number, signed=True)
            if scales.low < 0 or scales.high > MAX_SCALE:
                raise self._error(
                    number,
                    f"decimals of scale {scales.low} to {scales.high}, but only the scales 0 to "
                    f"{MAX_SCALE} are valid",
                )
        elif kind == _UNION or kind > _LAST_KIND:
            raise ValueError(
                f"the ORC type number {number} is a union or of an unknown kind (kind {kind}); no "
                "column of a table has such a type"
            )

    def _check_texts(self, number: int) -> None:
        encoding = self._encodings[number]
        is_direct = single(encoding, _ENCODING_KIND) in (_DIRECT, _DIRECT_2)
        found = self._lengths(number)
        place = self._places.get((_DATA if is_direct else _DICTIONARY, number))
        self._require(found, 0 if place is None else self._room(place, exact=False), number)
        if not is_direct and (words := single(encoding, _DICTIONARY_SIZE)) > found.count:
            there = counted(found.count, "word")
            raise self._error(
                number, f"a dictionary of {there}, but an encoding that claims {words}"
            )

    def _all_of(self, numbers: Iterable[int], found: RunSummary) -> list[_ByteRange]:
        """Return the byte ranges of all streams of the types ``numbers``.

        If the sum of the lengths in ``found`` is at most ``FEW``, return an empty list, because
        such lengths need no check.
        """
        if found.total <= FEW:
            return []
        below = set(numbers)
        return [place for (_, number), place in self._places.items() if number in below]

    def _require(self, found: RunSummary, room: int, number: int) -> None:
        if found.total > max(FEW, room):
            most = counted(room, "value")
            what = f"lengths whose sum is {found.total}, but data for at most {most}"
            raise self._error(number, what)

    def _lengths(self, number: int) -> RunSummary:
        found = self._summary(_LENGTH, number, signed=False)
        if found.low < 0 or found.high > MAX_LENGTH:
            raise self._error(
                number, f"a length of {min(found.low, 0) or found.high}, which no value can have"
            )
        return found

    def _summary(self, kind: int, number: int, *, signed: bool) -> RunSummary:
        place = self._places.get((kind, number))
        if place is None:
            return RunSummary()
        encoding = single(self._encodings[number], _ENCODING_KIND)
        if encoding > _DICTIONARY_2:
            raise self._error(number, f"an unknown encoding {encoding}")
        version = 2 if encoding in (_DIRECT_2, _DICTIONARY_2) else 1
        try:
            return summarise_runs(self._read(place), version=version, signed=signed)
        except (ValueError, IndexError) as reason:
            raise self._error(number, f"a damaged stream of the kind {kind}: {reason}") from None

    def _read(self, place: _ByteRange) -> bytes:
        self._stream.seek(place.start)
        return unpack(self._stream.read(place.size), self._tail.codec)

    def _room(self, place: _ByteRange, *, exact: bool) -> int:
        """Return the decompressed size of a stream in bytes. If ``exact`` is False, return an upper
        bound, which takes less time.
        """
        if self._tail.codec == UNCOMPRESSED:
            return place.size
        if exact:
            return len(self._read(place))
        room, at, end = 0, place.start, place.start + place.size
        while at < end:
            self._stream.seek(at)
            header = int.from_bytes(self._stream.read(CHUNK_HEADER), "little")
            room += header >> 1 if header & 1 else self._tail.block_size
            at += CHUNK_HEADER + (header >> 1)
        return room

    def _error(self, number: int, what: str) -> ValueError:
        return ValueError(
            f"the stripe at offset {self._offset} has, for type number {number}, {what}"
        )


def _places(streams: Iterable[Message], stripe: Stripe) -> dict[tuple[int, int], _ByteRange]:
    """Return the byte range of each stream, by kind and type number.

    Streams follow each other without gaps from the start of the stripe.
    """
    places: dict[tuple[int, int], _ByteRange] = {}
    start = stripe.start
    for message in streams:
        size = single(message, _STREAM_LENGTH)
        kind, column = single(message, _STREAM_KIND), single(message, _STREAM_COLUMN)
        stream = f"the stream of kind {kind} of column {column}"
        if start + size > stripe.footer_start:
            raise ValueError(f"{stream} ends after the data of the stripe at offset {stripe.start}")
        if (kind, column) in places:
            raise ValueError(f"{stream} occurs twice in the stripe at offset {stripe.start}")
        places[kind, column] = _ByteRange(start, size)
        start += size
    return places

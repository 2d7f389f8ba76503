# SPDX-License-Identifier: Apache-2.0
"""Checks the run-length encoded numbers of an ORC stream before Arrow's reader uses them.

Only the count, the sum, the minimum and the maximum of the numbers are kept. Most runs are
bit-packed; they are unpacked together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakeformat.files.orc.message import varint

__all__ = ["RunSummary", "summarise_runs"]

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""The width of the numbers of a run in bits, by the five bits in its header that encode it."""
_SHORT_REPEAT, _DIRECT, _PATCHED = range(3)
_SHORTEST_REPEAT = 3
_LONG_REPEATS_FROM = 8
"""A run whose first byte is less than this value repeats a number of one byte.

If a run repeats a number of 2 to 8 bytes, its first byte has this value or a higher one.
"""
_LITERALS_FROM = 128
_MOST_BITS = 62
"""The largest accepted width of a number in bits, so that its sum with a base fits into 64 bits.

Lengths and scales need fewer bits.
"""

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class RunSummary:
    """Count, sum, minimum and maximum of a stream's numbers; all 0 for an empty stream."""

    count: int = 0
    total: int = 0
    low: int = 0
    high: int = 0

    def add(self, count: int, total: int, low: int, high: int) -> None:
        self.low = min(self.low, low) if self.count else low
        self.high = max(self.high, high) if self.count else high
        self.count += count
        self.total += total

    def add_all(self, values: Numbers) -> None:
        self.add(len(values), int(values.sum()), int(values.min()), int(values.max()))


def summarise_runs(content: bytes, *, version: int, signed: bool) -> RunSummary:
    """Return the summary of the numbers in a decompressed stream.

    ``version`` is that of the run-length encoding, 1 or 2; ``signed`` numbers are zig-zag encoded.
    An invalid stream raises ``ValueError`` or ``IndexError``.
    """
    return (_Runs2 if version == 2 else _Runs1)(content, signed).summarise()


@dataclass(slots=True)
class _Runs1:
    """Summarises runs of version 1: numbers with a constant difference, and single numbers."""

    content: bytes
    signed: bool

    def summarise(self) -> RunSummary:
        content, place, found = self.content, 0, RunSummary()
        while place < len(content):
            head = content[place]
            if head < _LITERALS_FROM:
                count, step = head + 3, int.from_bytes(content[place + 1 : place + 2], signed=True)
                first, place = _number(content, place + 2, self.signed)
                _add_steps(found, count, first, step)
                continue
            place += 1
            for _ in range(256 - head):
                value, place = _number(content, place, self.signed)
                found.add(1, value, value, value)
        return found


@dataclass(slots=True)
class _Runs2:
    """Summarises runs of version 2: repeated numbers, bit-packed numbers, and differences."""

    content: bytes
    signed: bool
    found: RunSummary = field(default_factory=RunSummary)
    direct: dict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """The bit-packed bytes of runs, by their two header bytes, which encode count and width."""

    def summarise(self) -> RunSummary:
        content, place, end = self.content, 0, len(self.content)
        repeats, direct = [0] * 256, self.direct
        sizes: dict[bytes, int] = {}
        # Packed and short repeated runs are often as short as three numbers: avoid function calls
        # here.
        while place < end:
            head = content[place]
            if head < _LONG_REPEATS_FROM:
                repeats[content[place + 1]] += head + _SHORTEST_REPEAT
                place += 2
            elif head >> 6 == _DIRECT:
                start = place + 2
                key = content[place:start]
                size = sizes.get(key)
                if size is None:
                    sizes[key] = size = _size(_count(key) * _WIDTHS[head >> 1 & 31])
                place = start + size
                direct[key].append(content[start:place])
            else:
                place = self._rare(head, place)
        if place > end:
            raise ValueError("a run of numbers ends early")
        self._add_repeats(repeats)
        for key, runs in direct.items():
            values = _unpack_bits(b"".join(runs), len(runs), _count(key), _WIDTHS[key[0] >> 1 & 31])
            self.found.add_all(_unzigzag(values) if self.signed else values)
        return self.found

    def _add_repeats(self, repeats: list[int]) -> None:
        for value, count in enumerate(repeats):
            if count:
                number = (value >> 1) ^ -(value & 1) if self.signed else value
                self.found.add(count, number * count, number, number)

    def _rare(self, head: int, place: int) -> int:
        """Summarise a run of a rarer kind, and return the offset after it.

        The run begins at offset ``place`` with the byte ``head``. It has a repeated number of
        several bytes, packed numbers with exceptions, or differences.
        """
        kind = head >> 6
        if kind == _SHORT_REPEAT:
            return self._short_repeat(head, place)
        count = _count(self.content[place : place + 2])
        read = self._patched if kind == _PATCHED else self._steps
        return read(head, count, place + 2)

    def _short_repeat(self, head: int, place: int) -> int:
        packed, place = self._take(place + 1, (head >> 3 & 7) + 1)
        value, count = int.from_bytes(packed), (head & 7) + _SHORTEST_REPEAT
        if self.signed:
            value = (value >> 1) ^ -(value & 1)
        self.found.add(count, value * count, value, value)
        return place

    def _patched(self, head: int, count: int, place: int) -> int:
        width, third, fourth = _WIDTHS[head >> 1 & 31], self.content[place], self.content[place + 1]
        patch_width, gap_width = _WIDTHS[third & 31], (fourth >> 5) + 1
        if width + patch_width > _MOST_BITS:
            raise ValueError(
                f"a run has numbers of {width} bits and patches of {patch_width} more, "
                f"together over {_MOST_BITS}"
            )
        packed, place = self._take(place + 2, (third >> 5) + 1)
        sign_bit = 1 << (8 * len(packed) - 1)
        base = int.from_bytes(packed)
        base = sign_bit - base if base & sign_bit else base
        packed, place = self._take(place, _size(count * width))
        values = _unpack_bits(packed, 1, count, width)
        # Exceptions have the next larger width.
        patch_bits = next(bits for bits in _WIDTHS if bits >= gap_width + patch_width)
        patches = fourth & 31
        packed, place = self._take(place, _size(patches * patch_bits))
        exceptions = _unpack_bits(packed, 1, patches, patch_bits)
        places = np.cumsum(exceptions >> patch_width)
        if patches and places[-1] >= count:
            raise ValueError("a patch lies beyond the end of its run")
        np.bitwise_or.at(values, places, (exceptions & ((1 << patch_width) - 1)) << width)
        low, high, total = int(values.min()), int(values.max()), int(values.sum())
        self.found.add(count, base * count + total, base + low, base + high)
        return place

    def _steps(self, head: int, count: int, place: int) -> int:
        first, place = _number(self.content, place, self.signed)
        step, place = _number(self.content, place, True)
        code = head >> 1 & 31
        if not code:
            _add_steps(self.found, count, first, step)
            return place
        if count < 2:
            raise ValueError("a delta run has fewer than two numbers")
        packed, place = self._take(place, _size((count - 2) * _WIDTHS[code]))
        steps = _unpack_bits(packed, 1, count - 2, _WIDTHS[code])
        if max(abs(first), abs(step), int(steps.max(initial=0)) << 9) > 1 << _MOST_BITS:
            raise ValueError("a delta run has numbers too large to add up in 64 bits")
        second = first + step
        rest = second + np.cumsum(-steps if step < 0 else steps)
        last = int(rest[-1]) if count > 2 else second
        total = first + second + int(rest.sum())
        self.found.add(count, total, min(first, last), max(first, last))
        return place

    def _take(self, place: int, size: int) -> tuple[bytes, int]:
        end = place + size
        if end > len(self.content):
            raise ValueError("a run of numbers ends early")
        return self.content[place:end], end


def _add_steps(found: RunSummary, count: int, first: int, step: int) -> None:
    last = first + step * (count - 1)
    found.add(count, (first + last) * count // 2, min(first, last), max(first, last))


def _number(content: bytes, place: int, signed: bool) -> tuple[int, int]:
    value, place = varint(content, place)
    return ((value >> 1) ^ -(value & 1) if signed else value), place


def _count(heads: bytes) -> int:
    return ((heads[0] & 1) << 8 | heads[1]) + 1


def _size(bits: int) -> int:
    return (bits + 7) // 8


def _unpack_bits(packed: bytes, runs: int, count: int, width: int) -> Numbers:
    """Return the numbers of ``runs`` packed runs of ``count`` numbers each, ``width`` bits wide.

    The highest bit is first; each run begins at a whole byte.
    """
    if width > _MOST_BITS:
        raise ValueError(f"a run has numbers of {width} bits, more than {_MOST_BITS}")
    rows = np.frombuffer(packed, np.uint8).reshape(runs, _size(count * width))
    if width in (8, 16, 32):
        return rows.view(f">u{width // 8}").astype(np.int64).reshape(-1)
    bits = np.unpackbits(rows, axis=1, count=count * width).reshape(-1, width)
    values = np.zeros(len(bits), np.int64)
    for bit in range(width):
        values = values << 1 | bits[:, bit]
    return values


def _unzigzag(values: Numbers) -> Numbers:
    return (values >> 1) ^ -(values & 1)

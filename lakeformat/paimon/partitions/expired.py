# SPDX-License-Identifier: Apache-2.0
"""Chooses the expired partitions, by their values or by the time of their last write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.partition_filter import without_padding
from lakeformat.paimon.partitions.live import LivePartition
from lakeformat.paimon.partitions.partition_reports import NO_MATCH, ExpiredPartition
from lakeformat.paimon.schema import TableSchema
from lakeformat.tables.time_format import TimeFormat, fill_pattern
from lakeformat.types.types import AtomicType, DataType, TypeName, atomic
from lakeformat.types.value_text import cast_text

__all__ = ["ExpireRules", "Expiry", "pick_expired"]

UPDATE_TIME = "update-time"
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireRules:
    """The age at which a partition expires, and the limits of one call.

    A call deletes at most ``max_num`` partitions, and each commit at most ``batch_size`` of them;
    ``batch_size=None`` means one commit.
    """

    strategy: str
    expiration: timedelta
    pattern: str
    format: TimeFormat
    max_num: int
    batch_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The result of a choice: partitions that expire, and what is known about the other partitions.

    ``left`` is the number of expired partitions beyond the limit, ``kept`` the number of younger
    partitions. ``unknown`` has the path of each partition of unknown age, and the reason.
    """

    expired: tuple[ExpiredPartition, ...] = ()
    left: int = 0
    kept: int = 0
    unknown: tuple[tuple[str, str], ...] = ()


def pick_expired(
    schema: TableSchema,
    partitions: Sequence[LivePartition],
    rules: ExpireRules,
    older_than: datetime,
) -> Expiry:
    """Return the partitions to expire: those older than ``older_than``, sorted by their values.

    At most ``rules.max_num`` partitions are chosen. The result also counts the other partitions.
    """
    texts = partition_value_texts(schema, [partition.row for partition in partitions])
    found: list[tuple[str, ExpiredPartition]] = []
    unknown: list[tuple[str, str]] = []
    for partition, values in zip(partitions, texts, strict=True):
        time = _time_of(schema, partition, values, rules)
        if isinstance(time, str):
            unknown.append((partition.path, time))
        elif time < older_than:
            when = "last written" if rules.strategy == UPDATE_TIME else "its time is"
            reason = f"{when} {time:%Y-%m-%d %H:%M:%S}, before {older_than:%Y-%m-%d %H:%M:%S}"
            joined = ",".join("" if value is None else value for value in values)
            found.append((joined, ExpiredPartition(partition=partition, reason=reason)))
    found.sort(key=lambda each: each[0])
    expired = tuple(each for _, each in found[: rules.max_num])
    return Expiry(
        expired=expired,
        left=len(found) - len(expired),
        kept=len(partitions) - len(found) - len(unknown),
        unknown=tuple(unknown),
    )


def _time_of(
    schema: TableSchema,
    partition: LivePartition,
    values: Sequence[str | None],
    rules: ExpireRules,
) -> datetime | str:
    """Return the time of a partition as datetime.

    If the partition has no time, return the reason as str.
    """
    if rules.strategy == UPDATE_TIME:
        return partition.updated or "one of its files has no creation time"
    text = fill_pattern(rules.pattern, dict(zip(schema.partition_keys, values, strict=True)))
    if text is None:
        return "the time is read from partition columns, and one of their values is null"
    time = rules.format.parse(text)
    return time or f"{text!r} {NO_MATCH} {rules.format.formatter!r}"


def partition_value_texts(
    schema: TableSchema, rows: Sequence[bytes]
) -> list[tuple[str | None, ...]]:
    """Return the values of each partition as SQL casts them to text: a date is '2024-01-31'.

    A null value is None. CHAR values have no blanks at their ends. TIMESTAMP_LTZ values are local
    times of this machine.
    """
    fields = partition_fields(schema)
    framed = FramedRows(pa.array(rows, pa.large_binary()), [field.type for field in fields])
    columns = [_texts(framed.column(at), field.type).to_pylist() for at, field in enumerate(fields)]
    return list(zip(*columns, strict=True))


def _texts(values: pa.Array, data_type: DataType) -> pa.Array:
    if isinstance(data_type, AtomicType) and data_type.name is TypeName.TIMESTAMP_LTZ:
        local = atomic(TypeName.TIMESTAMP, data_type.precision)
        return cast_text(_wall_clock(values), local)
    return cast_text(without_padding(values, data_type), data_type)


def _wall_clock(instants: pa.Array) -> pa.Array:
    """Return instants as local times of this machine, like the time with which they are compared.

    An instant too early or too late for ``datetime`` is kept as UTC.
    """
    per_second = _PER_SECOND[instants.type.unit]
    numbers = [
        None if each is None else _shifted(each, per_second)
        for each in instants.cast(pa.int64()).to_pylist()
    ]
    return pa.array(numbers, pa.int64()).cast(pa.timestamp(instants.type.unit))


def _shifted(number: int, per_second: int) -> int:
    try:
        offset = datetime.fromtimestamp(number // per_second, UTC).astimezone().utcoffset()
    except (OverflowError, ValueError, OSError):  # a year that datetime does not have
        return number
    shifted = number + (offset or timedelta()) // timedelta(seconds=1) * per_second
    return shifted if abs(shifted) <= _MOST else number

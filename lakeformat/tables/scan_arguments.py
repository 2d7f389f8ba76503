# SPDX-License-Identifier: Apache-2.0
"""Checks the columns and the limit of a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.types.closest import closest

__all__ = ["advice_to_list", "check_limit", "columns_named", "limited", "project"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Field = TypeVar("_Field", bound=_Named)


def columns_named(columns: object) -> list[str]:
    """Return the names of columns as a list; an empty list if the argument is a single str, or not
    an iterable of str.
    """
    if not isinstance(columns, Iterable) or isinstance(columns, str | bytes):
        return []
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else []


def advice_to_list(argument: str, names: object) -> str:
    """Return the end of a message, such as ``: pass a list, as in columns=['id']``, if names were
    given as one str; "" for any other value.
    """
    if not isinstance(names, str):
        return ""
    return f": pass a list, as in {argument}={[name.strip() for name in names.split(',')]!r}"


def check_limit(limit: object) -> int | None:
    """Return the limit as an int; None means no limit.

    A negative number, and a value that is not a whole number, raise ``InvalidRequestError``.
    """
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0:
        raise InvalidRequestError(f"limit must be a whole number of rows, 0 or more, got {limit!r}")
    return int(limit)


def limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches with the first ``limit`` rows; ``limit=None`` yields all."""
    if limit is None:
        yield from batches
        return
    left = limit
    while left > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, left)
        left -= batch.num_rows


def project(
    fields: tuple[_Field, ...],
    columns: Sequence[str] | None,
    hidden: tuple[_Field, ...] = (),
    *,
    each_once: bool = False,
) -> tuple[_Field, ...]:
    """Return the fields with the names ``columns``, in this order; ``columns=None`` returns
    ``fields``.

    ``columns`` may also name ``hidden`` fields. An unknown name or an empty list raises
    ``InvalidRequestError``; with ``each_once``, so does a repeated name.
    """
    if columns is None:
        return fields
    by_name = {field.name: field for field in (*hidden, *fields)}
    names = columns_named(columns)
    strange = [name for name in names if name not in by_name]
    if strange or not names:
        raise InvalidRequestError(
            f"columns must name some of {', '.join(by_name)}, got {columns!r}"
            f"{closest(strange[0], by_name) if strange else advice_to_list('columns', columns)}"
        )
    if each_once and (repeated := [name for name in names if names.count(name) > 1]):
        raise InvalidRequestError(
            f"columns names {repeated[0]!r} more than once: name each column once"
        )
    return tuple(by_name[name] for name in names)

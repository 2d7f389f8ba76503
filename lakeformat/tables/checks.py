# SPDX-License-Identifier: Apache-2.0
"""The checks that a caller requests, and their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.types.amounts import parse_asked_duration
from lakeformat.types.closest import closest

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.rows.conditions.filter import Where

__all__ = ["CheckRequest", "Checks", "Columns", "age_millis", "columns_of"]

Columns: TypeAlias = str | Sequence[str]
"""The name of one column, or a list of names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Checks that a caller requests for the rows of a table.

    Each check has a name, such as ``rows``, ``not_null(id)`` or ``unique(shop, id)``. A null
    fails only ``not_null``: the other checks treat it as unknown and ignore it, as in SQL. But
    ``freshness`` fails if no row has a time.
    """

    min_rows: int | None = None
    max_rows: int | None = None
    not_null: Sequence[str] = ()
    """Names of columns that must not have nulls."""
    unique: Sequence[Columns] = ()
    """Columns, or lists of columns: no two rows may have the same values in them."""
    accepted_values: Mapping[str, Sequence[Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """The allowed values, by column."""
    freshness: Mapping[str, str | timedelta] = field(default_factory=lambda: MappingProxyType({}))
    """For each column of times: the highest allowed age of its newest time, such as ``"1 d"``."""
    conditions: Sequence[str] = ()
    """SQL conditions that each row must meet."""
    warn_only: Sequence[str] = ()
    """Names of checks that only warn; a kind such as ``"unique"`` stands for all checks of this
    kind.
    """

    def __post_init__(self) -> None:
        names = [*self.names()]
        if not names:
            raise InvalidRequestError(
                "no check was given: pass min_rows, max_rows, not_null, unique, accepted_values, "
                "freshness or conditions"
            )
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidRequestError(f"check {twice[0]} is given twice: give it once")
        if (self.min_rows or 0) < 0 or (self.max_rows or 0) < 0:
            raise InvalidRequestError(
                f"min_rows and max_rows must be 0 or more, got min_rows={self.min_rows} and "
                f"max_rows={self.max_rows}"
            )
        if self.max_rows is not None and (self.min_rows or 0) > self.max_rows:
            raise InvalidRequestError(
                f"min_rows={self.min_rows} is more than max_rows={self.max_rows}: no table can "
                "pass both checks"
            )
        known = {*names, *map(_kind, names)}
        for column, age in self.freshness.items():
            age_millis(column, age)
        for name in self.warn_only:
            if name not in known:
                raise InvalidRequestError(
                    f"warn_only names {name!r}, which is not one of the given checks: "
                    f"{', '.join(map(repr, names))}"
                    f"{closest(name, known)}"
                )

    def names(self) -> Iterator[str]:
        """Yield the name of each requested check."""
        if self.min_rows is not None or self.max_rows is not None:
            yield "rows"
        yield from (f"not_null({column})" for column in self.not_null)
        yield from (f"unique({', '.join(columns_of(each))})" for each in self.unique)
        yield from (f"accepted_values({column})" for column in self.accepted_values)
        yield from (f"freshness({column})" for column in self.freshness)
        yield from (f"condition({condition})" for condition in self.conditions)

    def only_warns(self, name: str) -> bool:
        """Return True if the check with this name only warns."""
        return name in self.warn_only or _kind(name) in self.warn_only


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The requested checks, and the rows to check; see ``Table.check``."""

    checks: Checks
    where: Where | None
    executor: Executor | None
    staged: Sequence[str] | None
    replaces: int | None


def columns_of(columns: Columns) -> tuple[str, ...]:
    """Return the names of one or several columns as a tuple."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def age_millis(column: str, age: str | timedelta) -> int:
    """Return an allowed age, such as ``"1 d"``, in milliseconds.

    A text that is not an age raises ``InvalidRequestError``, whose message names ``column``.
    """
    if isinstance(age, timedelta):
        return age // timedelta(milliseconds=1)
    try:
        return parse_asked_duration(age)
    except ValueError as reason:
        raise InvalidRequestError(
            f"freshness of {column!r} must be an age such as '1 d', got {age!r}: {reason}"
        ) from None


def _kind(name: str) -> str:
    return name.partition("(")[0]

# SPDX-License-Identifier: Apache-2.0
"""The description of a new table, and its differences from an existing table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["WantedTable", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTable:
    """The description of a new table, for a comparison with an existing table."""

    primary_key: Sequence[str] | None = None
    """The columns of the key; None accepts every key."""
    partition_by: Sequence[str] | None = None
    """The partition columns and transforms; None accepts all."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The table options or properties that must have these values."""


def difference(what: str, there: object, wanted: object) -> str:
    """Return a difference as text, for the option or property that ``what`` names.

    ``there`` is the value in the table; None if the table sets no value.
    """
    state = "not set" if there is None else repr(there)
    return f"{what} is {state} in the table and {wanted!r} in the request"

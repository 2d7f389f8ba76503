# SPDX-License-Identifier: Apache-2.0
"""Reports columns of a file's schema that the file does not have."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MissingColumnError", "require_columns"]

_SHOWN = 20


class MissingColumnError(ValueError):
    """A file lacks a column: its schema is not the one that its manifest names, or it is
    damaged.
    """


def require_columns(wanted: Sequence[str], there: Sequence[str]) -> None:
    """Raise if a file lacks one of ``wanted``, with one message for every format."""
    missing = [name for name in wanted if name not in there]
    if missing:
        more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
        raise MissingColumnError(
            f"its schema names column {missing[0]!r}, "
            f"the file has {', '.join(map(repr, there[:_SHOWN]))}{more}"
        )

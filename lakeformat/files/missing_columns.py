# SPDX-License-Identifier: Apache-2.0
"""Reports columns of a file's schema that the file does not have."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MissingColumnError", "require_columns"]

_SHOWN = 20


class MissingColumnError(ValueError):
    """A file lacks a column of its schema: the file is damaged, or its manifest names another
    schema.
    """


def require_columns(wanted: Sequence[str], there: Sequence[str]) -> None:
    """Raise ``MissingColumnError`` if a file with the columns ``there`` lacks one of ``wanted``."""
    missing = [name for name in wanted if name not in there]
    if missing:
        more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
        raise MissingColumnError(
            f"it lacks the column {missing[0]!r} of the schema that its manifest names; its "
            f"columns are {', '.join(map(repr, there[:_SHOWN]))}{more}"
        )

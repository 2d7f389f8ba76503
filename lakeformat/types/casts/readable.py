# SPDX-License-Identifier: Apache-2.0
"""Checks that texts can be parsed as a type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError

__all__ = ["require_readable"]


def require_readable(is_good: pa.Array, array: pa.Array, type_name: str) -> None:
    """Raise ``InvalidRequestError`` with the first text for which ``is_good`` is False or null.

    Null texts are skipped.
    """
    bad = pc.and_not(array.is_valid(), pc.fill_null(is_good, False))
    if pc.any(bad).as_py():
        first = array.filter(bad)[0].as_py()
        raise InvalidRequestError(f"the text {first!r} is not a valid {type_name}")

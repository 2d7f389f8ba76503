# SPDX-License-Identifier: Apache-2.0
"""Prints the key of a row for error messages."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = ["key_text"]


def key_text(rows: pa.Table, keys: Sequence[str], row: int) -> str:
    """Return the key as in ``key id = 7``; columns of the key that were not read are left out."""
    known = [key for key in keys if key in rows.column_names]
    return "key " + ", ".join(f"{key} = {rows[key][row].as_py()!r}" for key in known)

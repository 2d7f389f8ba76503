# SPDX-License-Identifier: Apache-2.0
"""Formats numbers of bytes for messages."""

from __future__ import annotations

__all__ = ["size"]

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """Return a number of bytes as text: ``912 B``, ``1.5 MiB``."""
    amount, shown = float(count), f"{count} B"
    for unit in _UNITS:
        if amount < 1024:
            break
        amount /= 1024
        shown = f"{amount:.1f} {unit}"
    return shown

# SPDX-License-Identifier: Apache-2.0
"""Formats counts for messages."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: ``1 file``, ``2 files``, ``1,000 directories``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

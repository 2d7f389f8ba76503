# SPDX-License-Identifier: Apache-2.0
"""Ends a message with a period, so that another sentence can follow."""

from __future__ import annotations

__all__ = ["sentence"]


def sentence(text: object) -> str:
    """Return a message that ends with one period, or with its question mark."""
    ended = str(text).rstrip(". ")
    return ended if ended.endswith("?") else f"{ended}."

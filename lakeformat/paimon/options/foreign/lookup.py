# SPDX-License-Identifier: Apache-2.0
"""Finds the declaration of an option of other engines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lakeformat.paimon.options.foreign.declaration import ForeignOption
from lakeformat.paimon.options.foreign.layout import LAYOUT, LAYOUT_PATTERNS
from lakeformat.paimon.options.foreign.meaning import MEANING, MEANING_PREFIXES, UNKNOWN_MEANING
from lakeformat.paimon.options.foreign.theirs import THEIR_PATTERNS, THEIRS

__all__ = ["FOREIGN_OPTIONS", "FOREIGN_PATTERNS", "MEANING_PREFIXES", "find_foreign"]

FOREIGN_OPTIONS: Mapping[str, ForeignOption] = {**THEIRS, **LAYOUT, **MEANING}
"""The declarations of all options of other engines that are declared by name."""

FOREIGN_PATTERNS: Mapping[str, ForeignOption] = {**THEIR_PATTERNS, **LAYOUT_PATTERNS}
"""The declarations of patterns; a pattern is the beginning of a key, with ``*`` at its end."""


@lru_cache(maxsize=4096)
def find_foreign(key: str) -> ForeignOption | None:
    """Return the declaration of a key: by its name, its prefix or a pattern; None without one."""
    if (found := FOREIGN_OPTIONS.get(key)) is not None:
        return found
    if key.startswith(MEANING_PREFIXES):
        return UNKNOWN_MEANING
    for pattern, option in FOREIGN_PATTERNS.items():
        if key.startswith(pattern[:-1]):
            return option
    return None

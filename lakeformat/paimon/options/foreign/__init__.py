# SPDX-License-Identifier: Apache-2.0
"""Options that only other engines implement; some of them make this library refuse operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lakeformat.paimon.options.foreign.declaration import ForeignClass, ForeignOption, Trait
from lakeformat.paimon.options.foreign.layout import LAYOUT, LAYOUT_PATTERNS
from lakeformat.paimon.options.foreign.meaning import MEANING, MEANING_PREFIXES, UNKNOWN_MEANING
from lakeformat.paimon.options.foreign.theirs import THEIR_PATTERNS, THEIRS

__all__ = [
    "FOREIGN_OPTIONS",
    "FOREIGN_PATTERNS",
    "MEANING_PREFIXES",
    "ForeignClass",
    "ForeignOption",
    "Trait",
    "find_foreign",
]

FOREIGN_OPTIONS: Mapping[str, ForeignOption] = {**THEIRS, **LAYOUT, **MEANING}
"""The declarations of options that only other engines implement, by key."""

FOREIGN_PATTERNS: Mapping[str, ForeignOption] = {**THEIR_PATTERNS, **LAYOUT_PATTERNS}
"""The declarations that apply to many keys, by pattern: the beginning of a key, then ``*``."""


@lru_cache(maxsize=4096)
def find_foreign(key: str) -> ForeignOption | None:
    """Return the declaration for a key, or for a prefix or pattern that matches the key.

    Return None if the key is not declared.
    """
    if (found := FOREIGN_OPTIONS.get(key)) is not None:
        return found
    if key.startswith(MEANING_PREFIXES):
        return UNKNOWN_MEANING
    for pattern, option in FOREIGN_PATTERNS.items():
        if key.startswith(pattern[:-1]):
            return option
    return None

# SPDX-License-Identifier: Apache-2.0
"""Options that only other engines implement; some of them make this library refuse operations."""

from lakeformat.paimon.options.foreign.declaration import ForeignClass, ForeignOption, Trait
from lakeformat.paimon.options.foreign.lookup import (
    FOREIGN_OPTIONS,
    FOREIGN_PATTERNS,
    MEANING_PREFIXES,
    find_foreign,
)

__all__ = [
    "FOREIGN_OPTIONS",
    "FOREIGN_PATTERNS",
    "MEANING_PREFIXES",
    "ForeignClass",
    "ForeignOption",
    "Trait",
    "find_foreign",
]

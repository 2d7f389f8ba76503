# SPDX-License-Identifier: Apache-2.0
"""Options that this version does not carry out, and the operations that some of them forbid."""

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

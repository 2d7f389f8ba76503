# SPDX-License-Identifier: Apache-2.0
"""Formats the mark of an unfinished clone for messages.

The mark is JSON in a file or a property.
"""

from __future__ import annotations

import json

__all__ = ["shown_mark"]


def shown_mark(mark: bytes | str) -> str:
    """Return the mark of an unfinished clone as text for messages; "" for a damaged mark.

    The text names the cloned part and the source table: `` (tag v1 of /data/shop.db/orders)``.
    """
    try:
        found = json.loads(mark)
        return f" ({found['what']} of {found['source']})"
    except (ValueError, TypeError, LookupError):
        return ""

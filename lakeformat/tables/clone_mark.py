# SPDX-License-Identifier: Apache-2.0
"""The mark of an unfinished clone, as text for messages."""

from __future__ import annotations

import json

__all__ = ["shown_mark"]


def shown_mark(mark: bytes | str) -> str:
    """Return the mark of an unfinished clone as text for messages; "" for a damaged mark.

    The text has the cloned part and its table, such as `` (tag v1 of /data/shop.db/orders)``.
    """
    try:
        found = json.loads(mark)
        return f" ({found['what']} of {found['source']})"
    except (ValueError, TypeError, LookupError):
        return ""

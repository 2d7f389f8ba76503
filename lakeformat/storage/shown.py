"""Addresses as messages may show them."""

from __future__ import annotations

import re

__all__ = ["without_credentials"]

_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:/*)[^@]*:.*@", re.DOTALL)


def without_credentials(address: str) -> str:
    """The address without what stands before an ``@`` and looks like a name and a password."""
    return _CREDENTIALS.sub(r"\1…@", address)

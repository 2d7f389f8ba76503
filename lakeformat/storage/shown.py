"""Addresses as messages may show them."""

from __future__ import annotations

import re

__all__ = ["carries_secret", "without_credentials"]

_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:/*)[^@]*:.*@", re.DOTALL)
_SIGNED = re.compile(
    r"([?&;](?:X-Amz-[\w-]+|AWSAccessKeyId|X-Goog-[\w-]+|signature|sig|password|token)=)[^&;]*",
    re.IGNORECASE,
)


def without_credentials(address: str) -> str:
    """The address without what looks like a name and a password before an ``@``, or signs it."""
    return _SIGNED.sub(r"\1…", _CREDENTIALS.sub(r"\1…@", address))


def carries_secret(address: str) -> bool:
    """Whether there is something in it that no message may show."""
    return without_credentials(address) != address

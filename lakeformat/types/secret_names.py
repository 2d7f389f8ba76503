# SPDX-License-Identifier: Apache-2.0
"""Recognizes names of secrets."""

from __future__ import annotations

import re

__all__ = ["names_secret"]

_SECRET_NAME = re.compile(
    r"(?i)passw|passphrase|pwd|secret|token|credential|private|(api|access)[-_.]?key|authori[sz]ation"
)


def names_secret(name: str) -> bool:
    """Return True if a column or option with this name probably holds a secret."""
    return _SECRET_NAME.search(name) is not None

# SPDX-License-Identifier: Apache-2.0
"""Table options whose values are credentials: recognised by their keys, hidden in output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import overload

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.shown import carries_secret, without_credentials

__all__ = ["names_credential", "require_no_credential", "shown_option", "shown_options"]

_SEPARATORS = re.compile(r"[-_.]|(?<=[a-z0-9])(?=[A-Z])")
"""Matches the boundary between two words of a key: ``-``, ``_``, ``.``, or the place before a
capital letter as in ``accessKeySecret``.
"""
_CREDENTIALS = frozenset({"credential", "credentials", "passwd", "password", "secret", "token"})
_KEYS = re.compile(
    r"(^|-)(access|account|api|encryption|private|shared)-?key(-|$)"
    r"|authorization|connection-?string|jaas-config|passphrase|password|secret"
)
"""Matches further keys whose values are hidden in output. Unlike the keys of ``names_credential``,
they are allowed as options of a table.
"""
_HIDDEN = "***"
_DIRECTORY = ".path"
"""The end of the keys whose values are addresses of directories."""


def names_credential(key: str) -> bool:
    """Return True if a word in the key, such as ``password``, shows that its value is a
    credential.
    """
    return not _CREDENTIALS.isdisjoint(_folded(key).split("-"))


def require_no_credential(key: str, value: str = "") -> None:
    """Raise ``InvalidRequestError`` if ``key`` names a credential.

    Raise it also if the option is a directory, such as ``write.data.path``, and its address
    ``value`` contains a credential.
    """
    if key.endswith(_DIRECTORY) and carries_secret(value):
        raise InvalidRequestError(
            f"option {key!r} is {without_credentials(value)!r}, an address with a credential, and "
            "options of a table are stored as plain text in its metadata: leave the credential "
            "out, and give it to the catalog or the connection instead"
        )
    if names_credential(key):
        raise InvalidRequestError(
            f"option {key!r} names a credential, and options of a table are stored as plain text "
            "in its metadata: give the credential to the catalog or the connection instead"
        )


@overload
def shown_option(key: str, value: str) -> str: ...
@overload
def shown_option(key: str, value: str | None) -> str | None: ...
def shown_option(key: str, value: str | None) -> str | None:
    """Return the value of an option for output: ``***`` for a credential. An address is returned
    without user and password. None, an option that is not set, is returned unchanged.
    """
    if value is None:
        return None
    if names_credential(key) or _KEYS.search(_folded(key)) is not None:
        return _HIDDEN
    return without_credentials(value)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options in the order of their keys, with the values of ``shown_option``."""
    return {key: shown_option(key, value) for key, value in sorted(options.items())}


def _folded(key: str) -> str:
    return _SEPARATORS.sub("-", key).lower()

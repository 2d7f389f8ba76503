# SPDX-License-Identifier: Apache-2.0
"""Removes secrets from addresses and paths in messages."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["carries_secret", "holds_key_material", "secrets_in", "without_credentials"]

_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:/*)[^@]*:.*@", re.DOTALL)
_SIGNED = re.compile(
    r"([?&;](?:X-Amz-[\w-]+|AWSAccessKeyId|X-Goog-[\w-]+|signature|sig|password|pwd|token)=)[^&;]*",
    re.IGNORECASE,
)

_KEY_MATERIAL = re.compile(r"[{}\n\r\"]|-----BEGIN|private_key|^(?:eyJ|ewo|LS0tLS1C)")
"""Matches texts that are a key: JSON, PEM, several lines, or base64 of JSON or PEM."""
_LONGEST_PATH = 4096


def without_credentials(address: str) -> str:
    """Return the address with ``…`` instead of user and password before an ``@``, and instead of
    the values of parameters such as a signature, a password or a token.
    """
    return _SIGNED.sub(r"\1…", _CREDENTIALS.sub(r"\1…@", address))


def carries_secret(address: str) -> bool:
    """Return True if the address contains a secret."""
    return without_credentials(address) != address


def secrets_in(address: str) -> list[str]:
    """Return the secrets in an address: its password, and the values of parameters such as a
    signature. The error of a driver may show a secret without the address.

    If a password contains an unescaped ``:`` or ``@``, a driver may take a part of the password for
    the host, and show it in an error. So each part between these characters is returned, too.
    """
    login = re.search(r"//(.+)@", address)
    password = login[1].partition(":")[2] if login is not None else ""
    values = [found[0].partition("=")[2] for found in _SIGNED.finditer(address)]
    parts = (password, *re.split("[:@]", password), *values)
    return [text for part in parts if part for text in (part, unquote(part))]


def holds_key_material(path: str) -> bool:
    """Return True if a text given as the path of a key file is the key itself."""
    return _KEY_MATERIAL.search(path.strip()) is not None or len(path) > _LONGEST_PATH

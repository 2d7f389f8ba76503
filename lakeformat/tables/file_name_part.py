# SPDX-License-Identifier: Apache-2.0
"""Checks names of tags, branches, consumers and staged results, which become a part of a file name
or of a table's name.
"""

from __future__ import annotations

import re

from lakeformat.errors import InvalidRequestError

__all__ = [
    "LONGEST_BYTES",
    "check_file_name_part",
    "check_new_branch_name",
    "check_new_file_name_part",
    "suffixed",
]

LONGEST_BYTES = 255 - len(".consumer-") - len(".") - 36 - len(".tmp")
"""The longest name that fits into a file name. Most file systems allow file names of 255 bytes. The
longest file name is that of a consumer's temporary file.
"""

_TEMPORARY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")


def suffixed(name: str, prefix: str) -> str | None:
    """Return the part of a file name after ``prefix``.

    Return None for a name without the prefix, for the prefix alone, and for a temporary file.
    """
    rest = name.removeprefix(prefix)
    return rest if rest and rest != name and not _TEMPORARY.search(rest) else None


def check_new_branch_name(name: str) -> None:
    """Raise ``InvalidRequestError`` if the name of a new branch contains ``$``.

    With a ``$`` in the name, ``database.table$branch_<name>`` would not name the branch. Existing
    branches may have such names.
    """
    if "$" in name:
        raise InvalidRequestError(
            f"branch name {name!r} is not allowed: it must not contain '$', because "
            f"'database.table$branch_{name}' would not name this branch. Nothing was changed; "
            "choose another name"
        )


def check_new_file_name_part(what: str, name: object) -> None:
    """Raise ``InvalidRequestError`` if a new file cannot have this name.

    ``what`` is the kind of the name for the message, such as "tag name". Unlike
    ``check_file_name_part``, this also limits the length; existing files may have longer names.
    """
    check_file_name_part(what, name)
    if len(str(name).encode(errors="replace")) > LONGEST_BYTES:
        raise InvalidRequestError(
            f"{what} {name!r} is too long: it becomes part of a file name, so it must not have "
            f"more than {LONGEST_BYTES} bytes"
        )


def check_file_name_part(what: str, name: object) -> None:
    """Raise ``InvalidRequestError`` for a name that cannot be part of a file name.

    ``what`` is the kind of the name for the message, such as "consumer id".
    """
    if not isinstance(name, str):
        raise InvalidRequestError(f"a {what} must be a str, got {name!r}")
    if not name.strip() or name in (".", "..") or "/" in name or "\0" in name:
        raise InvalidRequestError(
            f"{what} {name!r} is not allowed: it becomes part of a file name, so it must not "
            "be blank, '.' or '..', and must not contain a slash or a null character"
        )

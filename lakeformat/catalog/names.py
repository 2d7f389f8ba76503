# SPDX-License-Identifier: Apache-2.0
"""Parses names of tables: ``database.table``, optionally with ``$`` and a branch or a system
table.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.layout import DATABASE_SUFFIX, MAIN_BRANCH
from lakeformat.paimon.metadata.branch_directory import check_branch_name

__all__ = [
    "BRANCH_PREFIX",
    "TableName",
    "check_name",
    "is_name",
    "parse_name",
    "parse_nested_name",
    "parse_plain_name",
    "refuse_system_database",
]

BRANCH_PREFIX = "branch_"
SYSTEM_DATABASE = "sys"
_ROOM = 255
"""The largest length of a directory name, in bytes, that HDFS and common file systems allow."""
# Names of directories cannot have control characters, line ends or half of a UTF-16 pair.
_FORBIDDEN = r"./\\$%:*?\"<>|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_SHOWN = 40
"""The number of characters that an error quotes from a name that is too long."""
_NAME = re.compile(rf"[^\s{_FORBIDDEN}][^{_FORBIDDEN}]*")


@dataclass(frozen=True, slots=True)
class TableName:
    """A parsed name ``database.table[$branch_<branch>][$<system table>]``."""

    database: str
    table: str
    branch: str = MAIN_BRANCH
    system_table: str | None = None

    def __str__(self) -> str:
        """Return ``database.table``, without branch and system table."""
        return f"{self.database}.{self.table}"


def parse_name(name: str) -> TableName:
    """Parse a name of a Paimon table.

    Raise ``InvalidRequestError`` for a name without a dot, for suffixes other than a branch and a
    system table, and if the table or the branch has a name that is not allowed. The database is not
    checked, but ``sys`` raises ``UnsupportedError``.
    """
    if not isinstance(name, str):
        raise InvalidRequestError(f"{name!r} is not a table name: write 'database.table'")
    database, dot, rest = name.partition(".")
    if not dot:
        raise InvalidRequestError(f"{name!r} is not a table name: write 'database.table'")
    refuse_system_database(database)
    table, *suffixes = rest.split("$")
    check_name("table", table)
    if suffixes and suffixes[0].startswith(BRANCH_PREFIX):
        check_branch_name(suffixes[0].removeprefix(BRANCH_PREFIX))
    return _with_suffixes(name, database, table, suffixes)


def parse_nested_name(name: str) -> TableName:
    """Parse a name of an Iceberg table, whose database may be nested, such as ``a.b.table``.

    Other programs choose such names, so their characters are not checked. ``InvalidRequestError``
    is raised for a name without a dot, for an empty part, and for suffixes other than a branch and
    a system table.
    """
    given: object = name
    plain, *suffixes = given.split("$") if isinstance(given, str) else [""]
    database, _, table = plain.rpartition(".")
    if not all(plain.split(".")) or not database:
        raise InvalidRequestError(f"{name!r} is not a table name: write 'database.table'")
    return _with_suffixes(name, database, table, suffixes)


def _with_suffixes(name: str, database: str, table: str, suffixes: list[str]) -> TableName:
    branch = MAIN_BRANCH
    if suffixes and suffixes[0].startswith(BRANCH_PREFIX):
        branch = suffixes.pop(0).removeprefix(BRANCH_PREFIX)
    if len(suffixes) > 1:
        raise InvalidRequestError(
            f"{name!r} is not a table name: write '$branch_<branch>', '$<system table>', or both "
            "in this order, after the name of the table"
        )
    return TableName(database, table, branch, suffixes[0] if suffixes else None)


def parse_plain_name(name: str) -> TableName:
    """Parse a name of a Paimon table that has no suffix, such as ``database.table``.

    Raise the errors of ``parse_name``, and ``InvalidRequestError`` for a branch or a system table.
    """
    parsed = parse_name(name)
    if parsed.branch != MAIN_BRANCH or parsed.system_table is not None:
        raise InvalidRequestError(
            f"{name!r} is a branch or a system table: name the table itself, 'database.table'"
        )
    return parsed


def is_name(what: str, name: object) -> bool:
    """Return True if a new database or table may have this name; ``what`` is "database" or
    "table".
    """
    try:
        check_name(what, name)
    except InvalidRequestError:
        return False
    return True


def check_name(what: str, name: object) -> None:
    """Raise ``InvalidRequestError`` if a database or table cannot have this name.

    ``what`` is "database" or "table". A database's name must leave room for the suffix ``.db``.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            f"{what} name {name!r} is not allowed: it becomes a directory, so it must not be "
            "empty, begin with a space or hold a control character or any of "
            '. / \\ $ % : * ? " < > |'
        )
    length, room = len(os.fsencode(name)), _ROOM - (len(DATABASE_SUFFIX) * (what == "database"))
    if length > room:
        raise InvalidRequestError(
            f"{what} name {name[:_SHOWN]!r}… has {length} bytes, which is too long: choose one of "
            f"at most {room} bytes"
        )


def refuse_system_database(database: object) -> None:
    """Raise ``UnsupportedError`` for ``sys``, the database that Paimon reserves for system
    tables.
    """
    if database == SYSTEM_DATABASE:
        raise UnsupportedError(
            f"{SYSTEM_DATABASE!r} is the system database: it cannot be created, changed or "
            "dropped, and this version has none of its tables. Use list_databases() and "
            "list_tables() instead"
        )

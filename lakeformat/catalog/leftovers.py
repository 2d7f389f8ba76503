# SPDX-License-Identifier: Apache-2.0
"""Finds and deletes files that dropped tables left.

A drop leaves files if it is interrupted, or if a writer adds files to the table afterwards.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from lakeformat.catalog.names import TableName
from lakeformat.catalog.table_format import sign_of_another_kind
from lakeformat.errors import AlreadyExistsError, CorruptTableError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import table_exists, table_identity
from lakeformat.storage import Storage
from lakeformat.storage.move_directory import mover

__all__ = [
    "checking_sibling",
    "dropped_path",
    "dropped_sibling",
    "has_leftovers",
    "refuse_another_kind",
    "refuse_leftovers",
    "remove_dropped",
]

_OF_A_TABLE = re.compile(
    r"snapshot|schema|manifest|changelog|index|statistics|tag|branch|bucket-.+|[^.=][^=]*=.*"
)
_DROPPED = ".dropped-"
_CHECKING = ".checking-"

_log = logging.getLogger(__name__)


def dropped_sibling(directory: str, new_id: Callable[[], str]) -> str:
    """Return a new path ``.dropped-<unique name>`` beside ``directory``.

    A drop renames the directory of the table to this path before it deletes the files.
    """
    return f"{directory.rpartition('/')[0]}/{_DROPPED}{new_id()}"


def checking_sibling(directory: str, identity: str, new_id: Callable[[], str]) -> str:
    """Return a new path ``.checking-<identity>-<unique name>`` beside ``directory``.

    A drop renames the directory of the table to this path, and then checks that the directory has
    the table for which the drop was planned. ``identity`` is the identity of this table. If it is
    empty, only the drop that renamed the directory can make this check.
    """
    return f"{directory.rpartition('/')[0]}/{_CHECKING}{identity}-{new_id()}"


def dropped_path(checking: str) -> str:
    """Return the path ``.dropped-<unique name>`` for a path that ``checking_sibling`` returned.

    A drop renames the directory to this path after it has checked the table in the directory.
    """
    parent, _, name = checking.rpartition("/")
    return f"{parent}/{_DROPPED}{name.removeprefix(_CHECKING).partition('-')[2]}"


def remove_dropped(storage: Storage, directory: str) -> list[str]:
    """Delete the hidden directories of interrupted drops in the directory of a database.

    A directory that its drop has not checked yet is checked first. It is deleted only if it has the
    table for which the drop was planned; otherwise it is kept, and a log warning names it. Return
    the names of the deleted directories.
    """
    names = []
    for info in storage.list(directory):
        if not info.is_directory:
            continue
        if info.name.startswith(_DROPPED):
            storage.delete_directory(info.path)
        elif info.name.startswith(_CHECKING) and _is_checked(storage, info.path):
            storage.delete_directory(dropped_path(info.path))
        else:
            continue
        names.append(info.name)
    return names


def _is_checked(storage: Storage, checking: str) -> bool:
    """Rename the directory ``checking`` to its ``dropped_path``, and return True.

    This is done only if the directory has the table whose identity is in its name. Otherwise log a
    warning and return False. If the directory no longer exists, return False without a warning.
    """
    identity = checking.rpartition("/")[2].removeprefix(_CHECKING).partition("-")[0]
    at_once = mover(storage)
    try:
        found = table_identity(storage, TableLayout(checking))
        if at_once is not None and identity and found == identity:
            at_once.rename_directory(checking, dropped_path(checking))
            return True
    except CorruptTableError:
        pass
    except NotFoundError:
        return False  # its own drop has renamed it meanwhile
    if storage.directory_exists(checking):
        _log.warning(
            "A drop that is not finished moved a table to the directory %s. The directory is kept, "
            "because it may have a new table of the same name instead of the table to drop. If no "
            "drop is running, rename the directory to the name of the table, or delete the "
            "directory if you do not need its rows",
            storage.uri(checking),
        )
    return False


def has_leftovers(storage: Storage, layout: TableLayout) -> bool:
    """Return True if the directory has files of a former Paimon table, but no table of any
    format.
    """
    return (
        not table_exists(storage, layout)
        and _leftover(storage, layout) is not None
        and sign_of_another_kind(storage, layout.root) is None
    )


def refuse_leftovers(storage: Storage, layout: TableLayout, name: TableName) -> None:
    """Raise ``AlreadyExistsError`` if the directory of a new table has files of a former table.

    The new table would read these files as its own. The error is also raised if the directory has a
    table of another format.
    """
    refuse_another_kind(storage, layout, str(name))
    found = _leftover(storage, layout)
    if found is not None and not table_exists(storage, layout):
        raise AlreadyExistsError(
            f"the directory of '{name}' holds files of a former table, whose schema is missing. "
            f"One of the files is {storage.uri(found)}. Delete the files with "
            f"catalog.drop_table('{name}'), or choose another name"
        )


def refuse_another_kind(storage: Storage, layout: TableLayout, name: str) -> None:
    """Raise ``AlreadyExistsError`` if the directory of a new table has a table of another format.

    Dropping the new table would delete the rows of that table.
    """
    if not storage.list(layout.root) or table_exists(storage, layout):
        return
    if (sign := sign_of_another_kind(storage, layout.root)) is not None:
        raise AlreadyExistsError(
            f"the directory of '{name}', {storage.uri(layout.root)}, holds a table of another "
            f"format ({sign}): choose another name"
        )


def _leftover(storage: Storage, layout: TableLayout) -> str | None:
    for info in storage.list(layout.root):
        if info.is_directory and _OF_A_TABLE.fullmatch(info.name):
            found = _first_file(storage, info.path)
            if found is not None:
                return found
    return None


def _first_file(storage: Storage, directory: str) -> str | None:
    """Return the path of one file below a directory; None if all files there are hidden."""
    for info in storage.list(directory):
        if info.name.startswith("."):
            continue
        found = _first_file(storage, info.path) if info.is_directory else info.path
        if found is not None:
            return found
    return None

# SPDX-License-Identifier: Apache-2.0
"""Branches: ``branch/branch-<name>/``, each a separate history of schemas, snapshots and tags.

A branch shares the data files, manifests and statistics of its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.layout import DOTS, MAIN_BRANCH, UNFINISHED_BRANCH, TableLayout
from lakeformat.storage import Storage
from lakeformat.tables.file_name_part import suffixed

__all__ = [
    "Branch",
    "branches",
    "check_branch_name",
    "require_branch",
    "require_branch_still",
    "unfinished_branches",
]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch other than main."""

    name: str
    create_millis: int
    """The time of the last change of the branch's directory, in epoch milliseconds.

    If the storage has no times of directories, it is the time of the branch's oldest schema file.
    """


def branches(storage: Storage, layout: TableLayout, threads: int | None = 1) -> list[Branch]:
    """Return the branches of a table, sorted by name.

    The branch main and unfinished branches are left out. If the storage has no times of
    directories, up to ``threads`` directories are listed in parallel to find the times;
    ``threads=None`` uses the default of ``in_parallel``.
    """
    there = storage.list(layout.branches_directory)
    unfinished = {suffixed(info.name, UNFINISHED_BRANCH) for info in there}
    changed = {
        name: info.modified_millis
        for info in there
        if (name := suffixed(info.name, "branch-")) is not None
        and info.is_directory
        and name not in unfinished
    }
    without_time = [name for name, millis in changed.items() if not millis]
    if without_time:
        # Imported here, because a table that is opened needs no threads.
        from lakeformat.tables.parallel import in_parallel

        created = in_parallel(partial(_first_file_millis, storage, layout), without_time, threads)
        changed |= zip(without_time, created, strict=True)
    return [Branch(name, millis) for name, millis in sorted(changed.items())]


def unfinished_branches(storage: Storage, layout: TableLayout) -> list[str]:
    """Return the names of branches whose creation, renaming or deletion has not finished."""
    names = (
        suffixed(info.name, UNFINISHED_BRANCH) for info in storage.list(layout.branches_directory)
    )
    return sorted(name for name in names if name is not None)


def require_branch(storage: Storage, layout: TableLayout) -> None:
    """Raise ``NotFoundError`` if ``layout.branch`` does not exist or is unfinished."""
    if storage.directory_exists(layout.metadata_root):
        if not storage.exists(layout.unfinished_branch(layout.branch)):
            return
        uri = storage.uri(layout.root)
        raise NotFoundError(
            f"branch {layout.branch!r} of {uri} is being created, renamed or deleted, or a program "
            "was interrupted while it did so. If a program still works on the branch, wait. If "
            "not, repeat the interrupted creation, renaming or deletion. `lake branch delete "
            f"{uri} {layout.branch}` removes a branch whose creation or deletion was interrupted"
        )
    names = [branch.name for branch in branches(storage, layout)]
    there = f"its branches are {', '.join(map(repr, names))}" if names else "main is the only one"
    raise NotFoundError(f"{storage.uri(layout.root)} has no branch {layout.branch!r}; {there}")


def require_branch_still(storage: Storage, layout: TableLayout) -> None:
    """Raise NotFoundError if the branch was deleted or renamed meanwhile; main always exists.

    Call this function before each write, because a write would create the directory of a deleted
    branch again.
    """
    if layout.branch != MAIN_BRANCH:
        require_branch(storage, layout)


def check_branch_name(name: str) -> None:
    """Raise InvalidRequestError if no new branch may have this name.

    A name must not be ``main``, blank, only digits, ``.`` or ``..``, or have a slash or a null
    character.
    """
    if name == MAIN_BRANCH:
        raise InvalidRequestError(
            f"the branch {MAIN_BRANCH!r} is the table itself: use the table's name without a "
            "branch, or choose another branch"
        )
    if not isinstance(name, str):
        raise InvalidRequestError(
            f"a branch name must be a str, got {name!r}: pass the name of one branch"
        )
    if not name.strip() or name.isdigit() or name in DOTS or "/" in name or "\0" in name:
        raise InvalidRequestError(
            f"branch name {name!r} is not allowed: it must not be blank, consist of digits only, "
            "hold a slash or a null character, or be . or .."
        )


def _first_file_millis(storage: Storage, layout: TableLayout, branch: str) -> int:
    schemas = storage.list(layout.on_branch(branch).schema_directory)
    return min((info.modified_millis for info in schemas), default=0)

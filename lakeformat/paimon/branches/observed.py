# SPDX-License-Identifier: Apache-2.0
"""Publishes the Iceberg metadata of a branch, and lists the files that such metadata needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from lakeformat.errors import LakeError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.tables.commit_observer import ObservedFiles
from lakeformat.types.sentence import sentence

__all__ = ["observe_all", "observe_branch", "observed_files"]

_log = logging.getLogger(__name__)


def observe_all(handle: TableHandle) -> None:
    """Publish the Iceberg metadata of a cloned or renamed table and of its branches, if their
    options require it.

    ``handle`` is the handle of main. The metadata has absolute addresses, so a clone or a renamed
    table needs new metadata. If a branch cannot be read, this is only logged, because the clone or
    rename is already done.
    """
    handle.observe_upkeep()
    try:
        for branch in branches(handle.storage, handle.layout):
            observe_branch(handle, branch.name)
    except LakeError as error:
        _log.warning(
            "the Iceberg metadata of the branches of %s may be outdated: %s If a branch has "
            "published metadata, run lake publish for it",
            *(handle.uri, sentence(error)),
        )


def observe_branch(handle: TableHandle, name: str) -> None:
    """Publish the Iceberg metadata of a new or renamed branch, if the branch's options require it.

    ``handle`` is the handle of main.
    """
    branch = _on_branch(handle, name)
    if branch is not None:
        branch.observe_upkeep()


def observed_files(handle: TableHandle) -> Iterator[ObservedFiles]:
    """Yield the files that the Iceberg metadata of main needs, then the files for each branch."""
    names = [each.name for each in branches(handle.storage, handle.layout)]
    for each in (handle, *(_on_branch(handle, name) for name in names)):
        found = None if each is None else each.observed_files()
        if found is not None:
            yield found


def _on_branch(handle: TableHandle, name: str) -> TableHandle | None:
    """Return the handle of a branch with its newest schema; None if the branch was deleted."""
    layout = handle.layout.on_branch(name)
    newest = latest_schema_id(handle.storage, layout)
    if newest is None:
        return None
    return replace(handle, layout=layout, schema=read_schema(handle.storage, layout, newest))

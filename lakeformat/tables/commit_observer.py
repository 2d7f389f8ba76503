# SPDX-License-Identifier: Apache-2.0
"""The contract of work that must follow each commit, such as publishing Iceberg metadata.

An observer does this work. The code that opens a table passes the observer to the table. So the
package of a table format need not import the package of the observer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from lakeformat.storage import Storage

__all__ = ["CommitObserver", "ObservedFiles", "ObserverLag"]

Handle_contra = TypeVar("Handle_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class ObservedFiles:
    """The directory in which an observer writes files, and the names of the files still needed."""

    storage: Storage
    directory: str
    needed: frozenset[str]


@dataclass(frozen=True, slots=True)
class ObserverLag:
    """The commits after which the work of the observer is still missing."""

    snapshots: int
    """The number of snapshots whose work is missing. All snapshots count if the results of earlier
    work are missing, or cannot be used or checked.
    """
    finding: str | None = None
    """The missing work as a clause for reports; None if no work is missing."""
    advice: str | None = None
    """The advice for a problem that another attempt would not solve; else None."""


class CommitObserver(Protocol[Handle_contra]):
    """Work that must follow each commit."""

    def before_commit(self, handle: Handle_contra) -> None:
        """Raise ``UnsupportedError``, before a commit, if the work after it would be impossible."""
        ...

    def after_commit(self, handle: Handle_contra) -> None:
        """Do the work that follows a commit.

        A failure is logged and not raised, because the commit is already published.
        """
        ...

    def lag(self, handle: Handle_contra) -> ObserverLag | None:
        """Return the work that earlier commits still lack; None for a table without such work."""
        ...

    def before_removal(self, handle: Handle_contra) -> None:
        """Do all missing work before the table deletes files.

        Raise a ``LakeError`` if that fails. Then the table must not delete files: readers of the
        observer's files may still need them.
        """
        ...

    def after_upkeep(self, handle: Handle_contra) -> None:
        """Do the work that follows a change of tags or an expiry of snapshots.

        A failure is logged and not raised.
        """
        ...

    def files(self, handle: Handle_contra) -> ObservedFiles | None:
        """Return the files of the observer, so that a search can find orphans among them.

        Return None if the observer writes no files for this table.
        """
        ...

# SPDX-License-Identifier: Apache-2.0
"""The contract of work that follows each commit of a table, such as a publication.

The package that opens a table gives it the observer, so a format never imports what observes it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["CommitObserver"]

Handle_contra = TypeVar("Handle_contra", contravariant=True)


class CommitObserver(Protocol[Handle_contra]):
    """Takes part in every commit of the tables that it is given to."""

    def before_commit(self, handle: Handle_contra) -> None:
        """Raise ``UnsupportedError`` if the work that must follow a commit cannot be done."""
        ...

    def after_commit(self, handle: Handle_contra) -> None:
        """Do the work that follows a durable commit; failures are logged and never raised."""
        ...

    def outstanding(self, handle: Handle_contra) -> str | None:
        """Return the work that earlier commits still need, as a clause; None if all is done."""
        ...

    def before_removal(self, handle: Handle_contra) -> None:
        """Do all outstanding work, so that no reader needs files that the table is about to delete.

        A failure is raised, because the files must then be kept.
        """
        ...

    def after_upkeep(self, handle: Handle_contra) -> None:
        """Do the work that follows changed tags or expired snapshots; failures are logged."""
        ...

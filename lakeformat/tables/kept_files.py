# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of a failed commit if it is certain that the table does not refer to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CommitOutcomeUnknownError, LakeError

__all__ = ["kept_if_published"]


@contextmanager
def kept_if_published(
    discard: Callable[[], object], *, also_after: tuple[type[LakeError], ...] = ()
) -> Iterator[None]:
    """Run a with block that commits; if the commit fails, call ``discard`` to delete its files.

    ``discard`` is not called after ``CommitOutcomeUnknownError`` or an exception that is not a
    ``LakeError``: then the commit may have been published. The files are also kept after errors of
    the classes ``also_after``: the caller then commits the files again.
    """
    try:
        yield
    except LakeError as error:
        if not isinstance(error, (CommitOutcomeUnknownError, *also_after)):
            discard()
        raise

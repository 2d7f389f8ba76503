# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of a failed commit if the table cannot refer to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CommitOutcomeUnknownError, LakeError

__all__ = ["kept_if_published"]


@contextmanager
def kept_if_published(discard: Callable[[], object]) -> Iterator[None]:
    """Run a with block that commits; call ``discard`` to delete its files if the commit fails.

    ``discard`` is not called after ``CommitOutcomeUnknownError``, an interruption or a defect of
    this library: then the commit may have been published.
    """
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except LakeError:
        discard()
        raise

# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of a failed commit, unless the table may refer to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CommitOutcomeUnknownError, LakeError

__all__ = ["kept_if_published"]


@contextmanager
def kept_if_published(discard: Callable[[], object]) -> Iterator[None]:
    """Delete the files of a failed commit with ``discard``, unless the table may refer to them.

    ``discard`` is not called after ``CommitOutcomeUnknownError``, nor after an interruption or a
    defect: these may occur after the publication.
    """
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except LakeError:
        discard()
        raise

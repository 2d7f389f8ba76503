"""Files of a commit that failed: deleted, unless the table may refer to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeformat.errors import CommitOutcomeUnknownError, LakeError

__all__ = ["kept_if_published"]


@contextmanager
def kept_if_published(discard: Callable[[], object]) -> Iterator[None]:
    """Delete the files of a commit that failed, unless the table may refer to them.

    ``discard`` deletes them. It is not called after ``CommitOutcomeUnknownError``, nor after an
    interruption or a defect, which may have come after the publication.
    """
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except LakeError:
        discard()
        raise

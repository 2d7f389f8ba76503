# SPDX-License-Identifier: Apache-2.0
"""The contract of writes that several processes share: rows are divided by their key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Overwritten
    from lakeformat.tables.commit_id import CommitId

__all__ = ["BegunBatch", "WriterBuckets"]


class WriterBuckets(Protocol):
    """A function that finds the bucket of each key.

    All rows of a bucket must be passed to the same writer.

    The function can be pickled for another process.
    """

    @property
    def count(self) -> int:
        """The number of buckets."""
        ...

    def __call__(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """Return the bucket of each row, from 0 on; ``columns`` are the columns of the key."""
        ...


class BegunBatch(AbstractContextManager["BegunBatch"], Protocol):
    """A batch of writes to a table. ``commit`` ends it. If there is no commit, the end of the with
    block ends it.
    """

    @property
    def transaction(self) -> int:
        """The id of the transaction, which writers in other processes need."""
        ...

    def commit(
        self,
        messages: Any,
        *,
        overwrite: Overwritten | None = None,
        where: Where | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Any:
        """Publish the files of commit messages, end the batch, and return the report of the
        commit.
        """
        ...

# SPDX-License-Identifier: Apache-2.0
"""Engine ``first-row``: the first row of a key is kept, later rows are ignored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.merge.ignored_deletes import meeting_retracts, without
from lakeformat.paimon.merge.key_text import key_text
from lakeformat.rows.groups import KeyGroups
from lakeformat.rows.take_rows import take_rows

__all__ = ["FirstRow"]


@dataclass(frozen=True, slots=True)
class FirstRow:
    """Keeps the first row of each key in merge order, with its own kind and sequence number.

    In keys whose rows must be merged (see ``KeyGroups.meets``), rows of the kinds -D and -U raise
    InvalidRequestError, unless ``ignore_delete`` drops these rows.
    """

    keys: tuple[str, ...] = ()
    """The primary-key columns, which error messages print."""
    ignore_delete: bool = False

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(columns)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        retracts = meeting_retracts(rows, groups)
        if retracts.any() and not self.ignore_delete:
            row = int(groups.order[retracts.argmax()])
            raise InvalidRequestError(
                "merge engine 'first-row' cannot delete or update rows, but a row of "
                f"{key_text(rows, self.keys, row)} has the kind -D or -U; to ignore these kinds, "
                "set the table option 'ignore-delete' to 'true'"
            )
        return take_rows(rows, without(groups, retracts).oldest)

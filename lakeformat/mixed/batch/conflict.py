# SPDX-License-Identifier: Apache-2.0
"""Checks the argument ``conflict``: Mixed tables take only ``transaction-order``.

Their batches keep what other commits change after the batch has started.
"""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.tables.arguments import CONFLICTS, TRANSACTION_ORDER
from lakeformat.types.closest import closest

__all__ = ["require_transaction_order"]


def require_transaction_order(table: str, conflict: object) -> None:
    """Raise an error unless ``conflict`` is ``"transaction-order"`` or None.

    Raise ``UnsupportedError`` for ``"optimistic"``, and ``InvalidRequestError`` for an unknown
    value. ``table`` is the URI of the table.
    """
    if conflict in (None, TRANSACTION_ORDER):
        return
    if conflict not in CONFLICTS:
        raise InvalidRequestError(
            f"{table} is a Mixed table, which takes only conflict='transaction-order' or None; "
            f"got {conflict!r}{closest(str(conflict), [TRANSACTION_ORDER])}"
        )
    raise UnsupportedError(
        f"{table} is a Mixed table, so conflict='optimistic' is not possible: if another commit "
        "changes a key after a batch has begun, that change wins over the row of the batch. Leave "
        "'conflict' out, or pass 'transaction-order'"
    )

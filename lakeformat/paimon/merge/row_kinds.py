# SPDX-License-Identifier: Apache-2.0
"""Drops retracts, which are rows of the kinds DELETE and UPDATE_BEFORE."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.rows.row_kinds import is_retract

__all__ = ["without_retracts"]


def without_retracts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch without those of kind DELETE or UPDATE_BEFORE."""
    retracts = is_retract(batch.column(VALUE_KIND.name).to_numpy())
    return batch.filter(pa.array(~retracts)) if retracts.any() else batch

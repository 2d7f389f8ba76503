# SPDX-License-Identifier: Apache-2.0
"""Reads the kinds of rows, which files store as one byte per row."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.rows.row_kinds import is_retract

__all__ = ["without_retracts"]


def without_retracts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch that are not retracts."""
    retracts = is_retract(batch.column(VALUE_KIND.name).to_numpy())
    return batch.filter(pa.array(~retracts)) if retracts.any() else batch

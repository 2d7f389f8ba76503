# SPDX-License-Identifier: Apache-2.0
"""The effect of a row on its key, as the byte stored beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.rows.groups import Mask

__all__ = ["DELETE", "INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "is_retract", "without_retracts"]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


def is_retract(kinds: npt.NDArray[np.int8]) -> Mask:
    """Mask the kinds that retract: update-before and delete."""
    found: Mask = (kinds == UPDATE_BEFORE) | (kinds == DELETE)
    return found


def without_retracts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch that are not retracts."""
    retracts = is_retract(batch.column(VALUE_KIND.name).to_numpy())
    return batch.filter(pa.array(~retracts)) if retracts.any() else batch

"""What a row does to its key, as the byte that is stored beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakeformat.merge.groups import Mask

__all__ = ["DELETE", "INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "is_retract"]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


def is_retract(kinds: npt.NDArray[np.int8]) -> Mask:
    """Whether each kind takes something back: an update-before or a delete."""
    found: Mask = (kinds == UPDATE_BEFORE) | (kinds == DELETE)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Concatenates the columns of several manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Column,
    ListColumn,
    Mask,
    NumberColumn,
    Positions,
)

__all__ = ["Buffers", "concat_columns"]

Buffers: TypeAlias = dict[tuple[int, ...], NDArray[np.uint8]]
"""Each concatenated buffer, by the ``id()`` values of the buffers that it joins."""


def concat_columns(parts: Sequence[Any], buffers: Buffers | None = None) -> Any:
    """Return one column with the values of all ``parts``, which are columns of one class.

    Columns that share a buffer also share the concatenated buffer, if the calls pass the same
    ``buffers``.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    buffers = {} if buffers is None else buffers
    present = _concat_present(parts)
    if isinstance(first, NumberColumn):
        return NumberColumn(np.concatenate([part.numbers for part in parts]), present)
    if isinstance(first, BytesColumn):
        data, starts = _concat_data(parts, buffers)
        return BytesColumn(data, starts, np.concatenate([part.sizes for part in parts]), present)
    shifts = _shifts([len(part.items) for part in parts])
    return ListColumn(
        concat_columns([part.items for part in parts], buffers),
        np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)]),
        np.concatenate([part.counts for part in parts]),
        present,
    )


def _concat_data(
    parts: Sequence[BytesColumn], buffers: Buffers
) -> tuple[NDArray[np.uint8], Positions]:
    if all(part.data is parts[0].data for part in parts):
        return parts[0].data, np.concatenate([part.starts for part in parts])
    shifts = _shifts([len(part.data) for part in parts])
    starts = [part.starts + shift for part, shift in zip(parts, shifts, strict=True)]
    which = tuple(id(part.data) for part in parts)
    if which not in buffers:
        buffers[which] = np.concatenate([part.data for part in parts])
    return buffers[which], np.concatenate(starts)


def _shifts(sizes: list[int]) -> list[int]:
    return [sum(sizes[:number]) for number in range(len(sizes))]


def _concat_present(parts: Sequence[Column]) -> Mask | None:
    if all(part.present is None for part in parts):
        return None
    masks = [
        np.ones(len(part), np.bool_) if part.present is None else part.present for part in parts
    ]
    return np.concatenate(masks)

# SPDX-License-Identifier: Apache-2.0
"""The functions ``hll_sketch`` and ``theta_sketch``: unite sketches with Apache DataSketches."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from lakeformat.errors import UnsupportedError

__all__ = ["sketch_union"]


def sketch_union(function: str, column: str) -> Callable[[Sequence[bytes]], bytes]:
    """Return a function that unites the serialized sketches of ``hll_sketch`` or ``theta_sketch``.

    Raise UnsupportedError, which names the column, if the package ``datasketches`` is not
    installed.
    """
    try:
        library = importlib.import_module("datasketches")
    except ImportError:
        raise UnsupportedError(
            f"column {column!r} has the aggregate function {function!r}, which needs the package "
            "'datasketches': pip install 'airflow-provider-lake[sketches]'"
        ) from None
    unite = _hll if function == "hll_sketch" else _theta
    return lambda values: _translated(unite, library, values)


def _translated(
    unite: Callable[[Any, Sequence[bytes]], bytes], library: Any, values: Sequence[bytes]
) -> bytes:
    try:
        return unite(library, values)
    except (RuntimeError, IndexError) as reason:  # the errors of the library for damaged bytes
        raise ValueError(str(reason)) from None


def _hll(library: Any, values: Sequence[bytes]) -> bytes:
    sketches = [library.hll_sketch.deserialize(value) for value in values]
    # The input with the lowest precision decides, because a union cannot be more precise.
    union = library.hll_union(min(sketch.lg_config_k for sketch in sketches))
    # The newest sketch is first, as in Paimon's Java code.
    for sketch in reversed(sketches):
        union.update(sketch)
    united: bytes = union.get_result(library.tgt_hll_type.HLL_4).serialize_compact()
    return united


def _theta(library: Any, values: Sequence[bytes]) -> bytes:
    union = library.theta_union()
    for value in values:
        union.update(library.compact_theta_sketch.deserialize(value))
    united: bytes = union.get_result().serialize()
    return united

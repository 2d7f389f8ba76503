# SPDX-License-Identifier: Apache-2.0
"""Chooses how TIMESTAMP_LTZ columns of ORC files are read, and finds their bounds in manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakeformat.files.orc.instants import InstantRule, Millis
from lakeformat.paimon.datafile.file_statistics import stored_statistics
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.types.types import AtomicType, DataField, TypeName
from lakeformat.types.values import values_to_arrow

__all__ = ["instant_bounds", "instant_rule"]


def instant_rule(options: TableOptions) -> InstantRule:
    """Return the rule, set by table options, by which TIMESTAMP_LTZ is read from ORC files."""
    return InstantRule(options.orc_timestamp_ltz_legacy_type, options.orc_writer_timezone)


def instant_bounds(file: DataFileMeta, file_fields: Sequence[DataField]) -> Mapping[str, Millis]:
    """Return the bounds of each TIMESTAMP_LTZ column of a file: least and greatest epoch
    milliseconds.

    A column without bounds in the manifest entry is left out.
    """
    instants = {
        field.name: field.type
        for field in file_fields
        if isinstance(field.type, AtomicType) and field.type.name is TypeName.TIMESTAMP_LTZ
    }
    bounds: dict[str, Millis] = {}
    for name, known in stored_statistics(file, file_fields).items():
        if name in instants and known.minimum is not None and known.maximum is not None:
            ends = values_to_arrow([known.minimum, known.maximum], instants[name])
            millis = ends.cast(pa.timestamp("ms", "UTC"), safe=False).view(pa.int64())
            least, greatest = millis.to_pylist()
            bounds[name] = (least, greatest)
    return bounds

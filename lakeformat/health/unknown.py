"""Files in the table's directories that nothing refers to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.handle import TableHandle
from lakeformat.health.report import UnknownFiles
from lakeformat.orphans.directories import Area, find_directories
from lakeformat.orphans.manifest_names import encoded
from lakeformat.orphans.name_set import numbers_of
from lakeformat.orphans.references import References

__all__ = ["find_unknown", "list_files"]

_DAY_MILLIS = 24 * 60 * 60 * 1000


def list_files(handle: TableHandle) -> pa.Table:
    """Number of the name, size and last change of data files, index files and metadata.

    List before looking up what is referred to: a file committed in between is known by then.
    """
    schema = pa.schema([(name, pa.int64()) for name in ("number", "size", "modified")])
    batches = [
        pa.record_batch(
            [
                pa.array(numbers_of(encoded(info.name) for info in listing.files)),
                pa.array([info.size for info in listing.files], pa.int64()),
                pa.array([info.modified_millis for info in listing.files], pa.int64()),
            ],
            schema=schema,
        )
        for listing in find_directories(handle, external_paths=False).listings()
        if listing.area is not Area.BRANCH
    ]
    return pa.Table.from_batches(batches, schema)


def find_unknown(handle: TableHandle, found: pa.Table, references: References) -> UnknownFiles:
    """Of the files found, those that nothing leads to."""
    is_strange = ~references.names.contains(found["number"].to_numpy())
    sizes, modified = found["size"].to_numpy()[is_strange], found["modified"].to_numpy()[is_strange]
    old = modified < handle.environment.now_millis() - _DAY_MILLIS
    return UnknownFiles(
        files=len(sizes),
        bytes=int(sizes.sum()),
        old_files=int(np.count_nonzero(old)),
        old_bytes=int(sizes[old].sum()),
    )

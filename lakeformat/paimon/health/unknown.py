# SPDX-License-Identifier: Apache-2.0
"""Lists the files in the table's directories, and finds those to which nothing refers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health_report import UnknownFiles
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.orphans.clock import by_storage_clock
from lakeformat.paimon.orphans.directories import Area, find_directories
from lakeformat.paimon.orphans.file_names import is_known, is_temporary
from lakeformat.paimon.orphans.manifest_names import encoded
from lakeformat.paimon.orphans.name_set import numbers_of
from lakeformat.paimon.orphans.references import References
from lakeformat.storage import FileInfo
from lakeformat.tables.age_floor import find_floor
from lakeformat.types.arrow_memory import array_of

__all__ = ["find_unknown", "list_files"]


def list_files(handle: TableHandle) -> pa.Table:
    """Return the columns ``number``, ``size``, ``modified`` and ``removable`` of the table's files.

    ``number`` stands for the name, see ``numbers_of``. ``removable`` is True for files that an
    orphan removal may delete: their names have a form that writers use, and the storage reports
    the time of their last change.

    Call this before you read the references. In the other order, a file that is committed in
    between would look unreferenced.
    """
    schema = pa.schema([(name, pa.int64()) for name in ("number", "size", "modified")])
    schema = schema.append(pa.field("removable", pa.bool_()))
    batches = [
        pa.record_batch(
            [
                array_of(numbers_of(encoded(info.name) for info in listing.files)),
                pa.array([info.size for info in listing.files], pa.int64()),
                pa.array([info.modified_millis for info in listing.files], pa.int64()),
                pa.array([_is_removable(info) for info in listing.files], pa.bool_()),
            ],
            schema=schema,
        )
        for listing in find_directories(handle, external_paths=False).listings()
        if listing.area is not Area.BRANCH
    ]
    return pa.Table.from_batches(batches, schema)


def find_unknown(handle: TableHandle, found: pa.Table, references: References) -> UnknownFiles:
    """Return the number and size of the listed files to which nothing refers.

    The ``removable`` files among them that are old enough to delete are also counted separately.
    ``found`` is the result of ``list_files``. ``references`` has the names of all files that
    metadata needs; read the references after the listing.
    """
    is_strange = ~references.names.contains(found["number"].to_numpy())
    sizes, modified, removable = (
        found[name].to_numpy()[is_strange] for name in ("size", "modified", "removable")
    )
    floor = by_storage_clock(
        handle,
        find_floor(handle.environment.now_millis()),
        references.newest.get(MAIN_BRANCH),
        is_explicit=False,
        may_write=False,
    )
    old = (modified < floor.millis) & removable
    return UnknownFiles(
        files=len(sizes),
        bytes=int(sizes.sum()),
        old_files=int(np.count_nonzero(old)),
        old_bytes=int(sizes[old].sum()),
    )


def _is_removable(info: FileInfo) -> bool:
    is_named_by_writers = is_temporary(info.name) or is_known(info.name)
    return is_named_by_writers and info.modified_millis > 0

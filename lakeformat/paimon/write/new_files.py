"""New files of a writer in one bucket, and the directory for files of a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.paimon.datafile.external_paths import ExternalPaths, TablePlace, external_paths
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, local_wall_clock
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.write.assign import Place

__all__ = ["NewFiles", "bucket_places", "file_origin"]


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The new files of one bucket, for a commit message."""

    place: Place
    data: tuple[DataFileMeta, ...]
    changelog: tuple[DataFileMeta, ...] = ()


def bucket_places(handle: TableHandle, place: Place) -> tuple[str, ExternalPaths | None]:
    """Return the directory of a bucket, and the external paths that replace it, if any."""
    layout = handle.layout
    partition = partition_path(handle.schema, place.partition)
    directory = layout.bucket_directory(place.bucket, partition)
    if handle.options.data_file_external_paths_strategy == "none":
        return directory, None
    external = external_paths(
        handle.options,
        layout.bucket_below_root(place.bucket, partition),
        TablePlace(handle.storage, handle.uri, handle.external_roots),
        handle.environment.random_fraction,
    )
    return directory, external


def file_origin(handle: TableHandle) -> FileOrigin:
    """Return schema id and time for files written now."""
    return FileOrigin(handle.schema.id, local_wall_clock(handle.environment.now_millis()))

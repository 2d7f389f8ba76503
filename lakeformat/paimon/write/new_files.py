"""The files a writer has made in one bucket, and where files of a bucket go."""

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
    """What a commit message says of one bucket."""

    place: Place
    data: tuple[DataFileMeta, ...]
    changelog: tuple[DataFileMeta, ...] = ()


def bucket_places(handle: TableHandle, place: Place) -> tuple[str, ExternalPaths | None]:
    """The directory of a bucket, and the external paths that are used instead if there are any."""
    layout = handle.layout
    partition = partition_path(handle.schema, place.partition)
    external = external_paths(
        handle.options,
        layout.bucket_below_root(place.bucket, partition),
        TablePlace(handle.storage, handle.uri, handle.external_roots),
        handle.environment.random_fraction,
    )
    return layout.bucket_directory(place.bucket, partition), external


def file_origin(handle: TableHandle) -> FileOrigin:
    """Files written now, by the schema the table was opened with."""
    return FileOrigin(handle.schema.id, local_wall_clock(handle.environment.now_millis()))

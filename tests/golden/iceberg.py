"""Golden Iceberg tables, written by Java, with what Java reads in them.

Each is copied once a process to a place of its own; tests must not change it. Paths in
``expected.json`` are relative to the table. Sizes there are those of the files as Java wrote them.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tests.golden.folder import as_new_files, golden_archive
from tests.golden.relocated import relocate

__all__ = ["ICEBERG_TABLES", "IcebergTable", "iceberg_table"]

ICEBERG_TABLES = (
    "add_files_name_mapping",
    "all_types",
    "avro_orc_files",
    "branches_tags",
    "bucket_truncate",
    "cow_dml",
    "equality_deletes",
    "expired",
    "hour_action",
    "identity_partitions",
    "java_types",
    "many_files",
    "metrics_modes",
    "mor_partition_granularity",
    "mor_position_deletes",
    "nested",
    "orphans",
    "puffin_statistics",
    "rewritten",
    "schema_evolution",
    "six_commits",
    "sort_orders",
    "spec_evolution",
    "spec_evolution_v1_void",
    "time_transforms",
    "v1_append",
    "v2_upgraded_to_v3",
    "v3_deletion_vectors",
    "v3_types_defaults",
)


@dataclass(frozen=True)
class IcebergTable:
    """One table and what Java reads in it; its files are shared, never write."""

    name: str
    location: str
    """The directory of the table, for ``open_table``."""
    as_written: Path
    """The table as Java wrote it, with its paths, and ``expected.json`` beside it."""

    @cached_property
    def expected(self) -> dict[str, Any]:
        """The content of ``expected.json``."""
        text = (self.as_written.parent / "expected.json").read_text(encoding="utf-8")
        content = json.loads(text)
        assert isinstance(content, dict)
        return content

    def relative(self, address: str) -> str:
        """Return the path below the table of a file of this copy."""
        before, _, inside = address.partition(f"{self.location}/")
        assert before in ("", "file:", "file://"), address
        return inside


@cache
def iceberg_table(name: str) -> IcebergTable:
    """Return one golden table, copied to a place of its own once for each process of tests."""
    unpacked = _unpacked() / name
    target = _place() / "tables" / name
    expected = json.loads((unpacked / "expected.json").read_text(encoding="utf-8"))
    relocate(unpacked / "table", target, expected["original_root"])
    return IcebergTable(name, str(target), unpacked / "table")


@cache
def _place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="golden-iceberg-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place.resolve()


@cache
def _unpacked() -> Path:
    with tarfile.open(golden_archive("iceberg")) as archive:
        archive.extractall(_place(), filter=as_new_files)
    return _place() / "iceberg"

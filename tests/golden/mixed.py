"""Golden Mixed tables, written by Amoro's own writers and optimizer, with what Amoro reads in them.

Each pair of stores is copied once a process to a place of its own; tests must not change it. Paths
in ``expected.json`` are relative to the directory of the pair.
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

__all__ = [
    "MIXED_TABLES",
    "MixedTable",
    "evaluator_vectors",
    "hash_vectors",
    "mixed_copy",
    "mixed_table",
]

MIXED_TABLES = (
    "keyed_day_minor",
    "keyed_int",
    "late_low_tx",
    "minor_major_full",
    "multi_key_buckets",
    "t1_t6_merge",
    "t1_t6_overwrite",
    "typed_keys",
)
"""The tables with a key, which have two stores."""


@dataclass(frozen=True)
class MixedTable:
    """One pair of stores and what Amoro reads in it; its files are shared, never write."""

    name: str
    root: Path
    """The directory with both stores."""
    expected: dict[str, Any]
    """The content of ``expected.json``."""

    @property
    def location(self) -> str:
        """The directory of the base store, for ``open_table``."""
        return str(self.root / self.expected["stores"]["base"])

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The state of the table after each step of its history."""
        return list(self.expected["steps"])

    def relative(self, address: str) -> str:
        """Return the path of a file below the directory of the pair."""
        return address.removeprefix("file:").removeprefix("//").removeprefix(f"{self.root}/")


@cache
def mixed_table(name: str) -> MixedTable:
    """Return one golden table, copied to a place of its own once for each process of tests."""
    return mixed_copy(name, _place() / "tables" / name)


def mixed_copy(name: str, target: Path) -> MixedTable:
    """Copy one golden table to ``target``, for a test that changes it."""
    unpacked = _unpacked() / name
    expected = json.loads((unpacked / "expected.json").read_text(encoding="utf-8"))
    for store in expected["stores"].values():
        original = f"{expected['original_root']}/{store}"
        relocate(unpacked / "table" / store, target / store, original)
    return MixedTable(name, target, expected)


def hash_vectors() -> dict[str, Any]:
    """Return keys with the hashes that Java computes, and tree nodes."""
    return _json("key_hash_vectors.json")


def evaluator_vectors() -> dict[str, Any]:
    """Return files of partitions with the decisions of Amoro's evaluator."""
    return _json("evaluator_vectors.json")


def _json(name: str) -> dict[str, Any]:
    content = json.loads((_unpacked() / name).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@cache
def _place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="golden-mixed-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place.resolve()


@cache
def _unpacked() -> Path:
    with tarfile.open(golden_archive("mixed")) as archive:
        archive.extractall(_place(), filter=as_new_files)
    return _place() / "mixed"

"""A table that another team's programs write, beside a neighbour that nothing may touch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
from lakeformat.paimon.metadata.index_manifest import (
    IndexManifestEntry,
    read_index_manifest,
    write_index_manifest,
)
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from tests.manifest_entries import entries_in
from tests.rewriting import rewrite_entries

__all__ = ["OPERATIONS", "SECRET", "Ground"]

SECRET = "ann-earns-100k"
COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
FOUR_DAYS = 4 * 24 * 60 * 60


@dataclass
class Ground:
    """A warehouse with a victim and a hostile table; ``outside`` is a directory beside it."""

    root: Path

    def __post_init__(self) -> None:
        catalog = self.catalog()
        for database in ("shop", "hr"):
            catalog.create_database(database)
        options = {"deletion-vectors.enabled": "true"}
        for name in ("hr.victim", "shop.neighbour"):
            victim = catalog.create_table(name, COLUMNS, options=options)
            victim.write(pa.table({"id": [1, 2], "note": [SECRET, "bob"]}))
            victim.delete("id = 2")
        catalog.create_table("shop.hostile", COLUMNS, options=options)
        self.outside.mkdir()
        pq.write_table(pa.table({"id": [1], "note": [SECRET]}), self.foreign)

    @property
    def warehouse(self) -> Path:
        return self.root / "wh"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def foreign(self) -> Path:
        """A file of no table."""
        return self.outside / "foreign.parquet"

    @property
    def victim(self) -> Path:
        return self.warehouse / "hr.db" / "victim"

    @property
    def hostile(self) -> Path:
        return self.warehouse / "shop.db" / "hostile"

    @property
    def data_file(self) -> Path:
        """The victim's rows."""
        [found] = self.victim.glob("bucket-0/*.parquet")
        return found

    def catalog(self, *allowed: Path) -> lake.Catalog:
        options = {"external-roots": ",".join(map(str, allowed))} if allowed else {}
        return lake.open_catalog(str(self.warehouse), options=options)

    def table(self) -> lake.Table:
        return self.catalog().table("shop.hostile")

    def write(self) -> lake.Table:
        """A commit of the hostile table, to be forged."""
        table = self.table()
        table.write(pa.table({"id": [8, 9], "note": ["mine", "mine"]}))
        return table

    def forge(self, change: Callable[[ManifestEntry], ManifestEntry]) -> None:
        """Change the manifest entries of a new commit of the hostile table."""
        rewrite_entries(self.write(), change)

    def name_outside(self, address: str, name: str | None = None) -> None:
        """Let a data file of the hostile table lie at another address: the victim's own entry."""
        theirs = self.victim_entry().file
        self.forge(
            lambda entry: replace(
                entry,
                file=replace(theirs, external_path=address, file_name=name or theirs.file_name),
            )
        )

    def victim_entry(self) -> ManifestEntry:
        handle = self.catalog().table("hr.victim")._handle
        snapshot = self.catalog().table("hr.victim").snapshot(1)
        assert snapshot is not None
        [manifest] = lists_of(handle, snapshot.delta_manifest_list)
        [entry] = entries_in(handle.storage, handle.layout, manifest)
        return entry

    def change_snapshot(self, **members: Any) -> None:
        """Change members of the newest snapshot file of the hostile table."""
        snapshot = self.table().latest_snapshot()
        assert snapshot is not None
        path = self.hostile / "snapshot" / f"snapshot-{snapshot.id}"
        path.write_text(json.dumps({**json.loads(path.read_text()), **members}))

    def change_schema(self, number: int = 0, branch: str = "", **options: str) -> None:
        """Give a schema of the hostile table other options, as a program of theirs can."""
        path = self.hostile / branch / "schema" / f"schema-{number}"
        schema = json.loads(path.read_text())
        schema["options"] |= options
        path.write_text(json.dumps(schema))

    def add_schema(self) -> None:
        """Make the first schema an old one."""
        old = json.loads((self.hostile / "schema" / "schema-0").read_text())
        (self.hostile / "schema" / "schema-1").write_text(json.dumps({**old, "id": 1}))

    def index_file(self, change: Callable[[IndexManifestEntry], IndexManifestEntry]) -> None:
        """Change the deletion vectors' files of the hostile table."""
        table = self.write()
        table.delete("id = 8")
        handle, snapshot = table._handle, table.latest_snapshot()
        assert snapshot is not None
        assert snapshot.index_manifest is not None
        found = read_index_manifest(handle.storage, handle.layout, snapshot.index_manifest)
        handle.storage.delete(handle.layout.manifest(snapshot.index_manifest))
        write_index_manifest(
            handle.storage,
            handle.layout,
            snapshot.index_manifest,
            [change(entry) for entry in found],
            handle.options,
        )

    def age(self) -> None:
        """Make every file old enough for the removal of orphan files."""
        for path in self.root.rglob("*"):
            if not path.is_symlink():
                now = path.stat().st_mtime
                os.utime(path, (now - FOUR_DAYS, now - FOUR_DAYS))

    def belongings(self) -> dict[str, bytes]:
        """Everything that is not the hostile table's, with its content."""
        return {
            str(path): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_relative_to(self.hostile) and "copy" not in str(path)
        }

    def loot(self) -> list[Path]:
        """Files of the attacker, copies included, that hold the victim's rows."""
        return [
            path
            for directory in (self.hostile, self.warehouse / "shop.db" / "copy")
            for path in directory.rglob("*.parquet")
            if not path.is_symlink() and SECRET in str(pq.read_table(path).to_pylist())
        ]


def lists_of(handle: Any, name: str) -> list[str]:
    """The manifests that a list names."""
    found = read_manifest_list(handle.storage, handle.layout, name)
    return [each.file_name for each in found]


def _rows(table: lake.Table) -> str:
    return str(table.scan().to_arrow().to_pylist())


def _expired(catalog: lake.Catalog, table: lake.Table) -> None:
    table.write(pa.table({"id": [5], "note": ["new"]}))
    table.compact(strategy="full")
    table.expire_snapshots(retain_max=1, retain_min=1)


def _emptied(catalog: lake.Catalog, table: lake.Table) -> None:
    table.truncate()
    table.expire_snapshots(retain_max=1, retain_min=1)


def _plain(catalog: lake.Catalog, table: lake.Table) -> str:
    """The files that Spark would read by itself."""
    scan = table.scan()
    return "".join(str(pq.read_table(each.path).to_pylist()) for each in scan.plain_files().files)


OPERATIONS: dict[str, Callable[[lake.Catalog, lake.Table], object]] = {
    "scan": lambda catalog, table: _rows(table),
    "first snapshot": lambda catalog, table: str(table.scan(snapshot=1).to_arrow().to_pylist()),
    "changes": lambda catalog, table: str(table.changes(0).to_arrow().to_pylist()),
    "where": lambda catalog, table: str(table.scan(where="id = 1").to_arrow().to_pylist()),
    "count": lambda catalog, table: table.scan().count(),
    "health": lambda catalog, table: table.health(unknown=True),
    "clone": lambda catalog, table: lake.clone_table(table, catalog, "shop.copy", full=True),
    "tag": lambda catalog, table: (table.tags.create("t"), table.tags.delete("t")),
    "indexes": lambda catalog, table: table.rewrite_file_indexes(force=True),
    "analyze": lambda catalog, table: table.analyze(),
    "update": lambda catalog, table: table.update("id = 1", {"note": "'x'"}),
    "write": lambda catalog, table: table.write(pa.table({"id": [4], "note": ["new"]})),
    "branch": lambda catalog, table: (table.branches.create("b"), table.branches.delete("b")),
    "fast forward": lambda catalog, table: table.branches.fast_forward("dev"),
    "consumer": lambda catalog, table: table.consumers.set("c", next_snapshot=1),
    "no consumers": lambda catalog, table: table.consumers.clear(),
    "manifests": lambda catalog, table: table.compact_manifests(),
    "missing manifests": lambda catalog, table: table.remove_missing_manifests(dry_run=False),
    "hints": lambda catalog, table: table.repair(),
    "plain files": _plain,
    "compact": lambda catalog, table: table.compact(strategy="full"),
    "expire": _expired,
    "missing files": lambda catalog, table: table.remove_missing_files(dry_run=False, max_share=1),
    "maintain": lambda catalog, table: table.maintain(),
    "orphans": lambda catalog, table: table.remove_orphans(dry_run=False, max_share=1),
    "external orphans": lambda catalog, table: table.remove_orphans(
        dry_run=False, max_share=1, external_paths=True
    ),
    "rollback": lambda catalog, table: table.rollback(snapshot=1),
    "truncate": _emptied,
    "alter": lambda catalog, table: catalog.alter_table(
        "shop.hostile", lake.set_option("snapshot.num-retained.max", "9")
    ),
    "drop": lambda catalog, table: catalog.drop_table("shop.hostile"),
}

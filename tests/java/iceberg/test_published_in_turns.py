"""Java Paimon and this library change a published table in turns; readers see each head.

Java publishes metadata of its own into the same directory. ``SEED=7`` repeats a history.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.publish.check.check import ExpectedRows, check_publication, publishable_rows
from lakeformat.publish.check.pyiceberg_files import pyiceberg_table
from lakeformat.publish.check.readers import READERS
from lakeformat.publish.place import versions_of
from tests.java.peer_process import JavaPeer
from tests.java.wire import assert_same, json_rows
from tests.json_process import JsonProcess
from tests.sampling import SEED, count

STEPS = count(12, 40, "STEPS")
COLUMNS = [("id", "BIGINT NOT NULL"), ("day", "INT NOT NULL"), ("note", "STRING")]


class BothSides:
    """The table, as this library and Java see it."""

    def __init__(self, peer: JavaPeer, name: str, seed: str, *, keyed: bool) -> None:
        self.peer, self.name, self.keyed = peer, f"paimon.{name}", keyed
        self.random = random.Random(seed)
        self.added = 0

    @property
    def catalog(self) -> lake.Catalog:
        return lake.open_catalog(str(self.peer.warehouse))

    @property
    def table(self) -> lake.Table:
        return self.catalog.table(self.name)

    def rows(self) -> pa.Table:
        """Some rows with all columns of the table."""
        schema = self.table.schema.arrow_schema()
        rows = [
            {"id": self.random.randrange(30), "day": self.random.randrange(3), "note": f"n{place}"}
            for place in range(self.random.randint(1, 12))
        ]
        unique = (
            {(row["day"], row["id"]): row for row in rows} if self.keyed else dict(enumerate(rows))
        )
        return pa.Table.from_pylist(list(unique.values()), schema=schema)

    def condition(self) -> str:
        first = self.random.randrange(25)
        return f"id >= {first} and id < {first + 6}"


def we_write(both: BothSides) -> None:
    both.table.write(both.rows())


def we_delete(both: BothSides) -> None:
    both.table.delete(both.condition())


def we_update(both: BothSides) -> None:
    both.table.update(both.condition(), {"note": "updated"})


def we_overwrite(both: BothSides) -> None:
    both.table.write(both.rows(), overwrite="partitions")


def we_compact(both: BothSides) -> None:
    both.table.compact(strategy=both.random.choice(["minor", "full"]))


def we_expire(both: BothSides) -> None:
    both.table.expire_snapshots(retain_max=4, retain_min=1)


def we_roll_back(both: BothSides) -> None:
    cuts = both.random.choice([True, False])
    before = both.random.choice(both.table.snapshots())
    both.table.rollback(snapshot=before.id, as_latest=not cuts, force=cuts)


def we_add_a_column(both: BothSides) -> None:
    both.added += 1
    both.catalog.alter_table(both.name, lake.add_column(f"c{both.added}", "INT"))


def java_writes(both: BothSides) -> None:
    both.peer.write(both.name, both.rows())


def java_deletes(both: BothSides) -> None:
    if both.keyed:
        rows = both.rows()
        both.peer.write(both.name, rows, kinds=["-D"] * len(rows))
    elif both.table.options.deletion_vectors_enabled:
        files = both.peer.call("live_files", table=both.name)
        if files:
            file = both.random.choice(files)
            row = both.random.randrange(file["rows"])
            both.peer.call("delete", table=both.name, positions={file["name"]: [row]})


def java_overwrites(both: BothSides) -> None:
    both.peer.write(both.name, both.rows(), overwrite=True)


def java_drops_a_partition(both: BothSides) -> None:
    day = str(both.random.randrange(3))
    both.peer.call("drop_partition", table=both.name, partition={"day": day})


def java_compacts(both: BothSides) -> None:
    both.peer.call("compact", table=both.name, options={"compaction.min.file-num": "2"})


def java_tags(both: BothSides) -> None:
    newest = both.table.latest_snapshot()
    assert newest is not None
    if f"j{newest.id}" not in {tag.name for tag in both.table.tags.list()}:
        both.peer.call("tag", table=both.name, tag=f"j{newest.id}", snapshot=newest.id)


def java_adds_a_column(both: BothSides) -> None:
    both.added += 1
    both.peer.alter_table(both.name, ("add", f"c{both.added}", "STRING"))


OURS: list[Callable[[BothSides], None]] = [
    *(we_write, we_write, we_delete, we_update, we_overwrite, we_compact, we_expire),
    *(we_roll_back, we_add_a_column),
]
JAVAS: list[Callable[[BothSides], None]] = [
    *(java_writes, java_writes, java_deletes, java_overwrites, java_drops_a_partition),
    *(java_compacts, java_tags, java_adds_a_column),
]


def check_head(both: BothSides) -> None:
    """Java and this library read the same rows, and PyIceberg those of the published files."""
    table = both.table
    rows = table.scan().to_arrow()
    assert_same(rows.schema.names, both.peer.read(both.name).rows, json_rows(rows))
    assert lake.publication_lag(table).finding is None
    assert check_publication(table, READERS[:1]).failed == ()


def check_history(both: BothSides, spark: Any) -> None:
    """PyIceberg and Java's Iceberg see the published rows of each snapshot."""
    handle = both.table._handle
    newest = versions_of(handle).newest()
    assert newest is not None
    theirs = pyiceberg_table(newest)
    database, _, name = both.name.partition(".")
    for snapshot in both.table.snapshots():
        scan = publishable_rows(handle, read_snapshot(handle.storage, handle.layout, snapshot.id))
        batches = theirs.scan(snapshot_id=snapshot.id).to_arrow_batch_reader()
        assert ExpectedRows(scan).differences(batches)[1:] == (0, 0), snapshot.id
        place = f"path.`{database}.db`.{name} VERSION AS OF {snapshot.id}"
        found = spark.sql(f"SELECT * FROM {place}").collect()
        rows = [tuple(row.values()) for row in scan.to_arrow().to_pylist()]
        assert sorted(map(tuple, found), key=repr) == sorted(rows, key=repr), snapshot.id


@pytest.fixture
def turns(java: JsonProcess, spark_with_iceberg: tuple[Any, Path]) -> Callable[..., None]:
    """Run a random history of one kind of table."""
    spark, folder = spark_with_iceberg
    peer = JavaPeer(java, folder / "path")

    def run(seed: int, kind: str, version: str) -> None:
        keyed = kind.startswith("keyed")
        name = f"turns_{kind}_{version}_{seed}".replace("-", "_")
        options = {
            "metadata.iceberg.storage": "table-location",
            "metadata.iceberg.format-version": version,
            "deletion-vectors.enabled": str(kind.endswith("vectors")).lower(),
            **({"bucket": "1", "num-levels": "3"} if keyed else {}),
        }
        catalog = lake.open_catalog(str(peer.warehouse))
        catalog.create_database("paimon", exist_ok=True)
        keys = {"primary_key": ["day", "id"]} if keyed else {}
        catalog.create_table(
            f"paimon.{name}", COLUMNS, partition_by=["day"], options=options, **keys
        )
        both, done = BothSides(peer, name, f"{seed}{kind}{version}", keyed=keyed), ["we_write"]
        we_write(both)
        try:
            for _ in range(STEPS):
                change = both.random.choice(both.random.choice([OURS, JAVAS]))
                done.append(change.__name__)
                change(both)
                if change in JAVAS:
                    lake.publish_table(both.table)
                check_head(both)
            check_history(both, spark)
        except Exception as error:
            error.add_note(f"SEED={seed} {kind} {version}: {', '.join(done)}")
            raise

    return run


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", ["append", "keyed", "append-vectors", "keyed-vectors"])
@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=5)))
def test_readers_see_each_head_of_a_random_history(
    turns: Callable[..., None], seed: int, kind: str, version: str
):
    turns(seed, kind, version)

"""Java writes on after a maintenance of its tables here, with any options they have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.flink_options import TABLES
from tests.java.peer_process import JavaPeer
from tests.json_process import PeerError

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "INT"), ("dt", "STRING NOT NULL")]
ROWS = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("dt", pa.string())])
LISTED = Path(__file__).resolve().parent.parent / "data/paimon_options.tsv"
VALUES = dict(
    line.split("\t")
    for line in LISTED.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)


def written_by_java(peer: JavaPeer, options: Mapping[str, str]) -> None:
    """A table of six commits, each of which replaces a row and adds one."""
    peer.create_table(
        "shop.t",
        COLUMNS,
        {"bucket": "1", "write-only": "true", **options},
        partition_keys=["dt"],
        primary_keys=["id", "dt"],
    )
    for value in range(6):
        write(peer, value)


def write(peer: JavaPeer, value: int) -> None:
    rows = {"id": [1, 10 + value], "v": [value, value], "dt": ["2026-01-01"] * 2}
    peer.write("shop.t", pa.table(rows, schema=ROWS))


def outcome(peer: JavaPeer) -> list[list[object]] | str:
    """The rows that Java reads, or the class of its refusal."""
    try:
        return sorted(peer.read("shop.t").rows)
    except PeerError as refused:
        return str(refused).splitlines()[0].split(":")[1].strip()


@pytest.mark.parametrize("kind", TABLES)
def test_java_goes_on_with_an_ordinary_table(
    catalog: lake.Catalog, peer: JavaPeer, kind: str
) -> None:
    written_by_java(peer, TABLES[kind])
    report = catalog.table("shop.t").maintain()
    assert (report.failed, report.obstacles) == ((), ())
    write(peer, 6)
    if TABLES[kind].get("deletion-vectors.enabled") == "true":
        catalog.table("shop.t").compact(strategy="full")  # until then batch reads miss the row
    day = "2026-01-01"
    assert outcome(peer) == [[1, 6, day], *([10 + value, value, day] for value in range(7))]


@pytest.mark.parametrize("key", VALUES)
def test_java_reads_the_same_before_and_after(
    catalog: lake.Catalog, peer: JavaPeer, tmp_path: Path, key: str
) -> None:
    written_by_java(peer, {})
    path = tmp_path / "warehouse/shop.db/t/schema/schema-0"
    schema = json.loads(path.read_bytes())
    path.write_text(json.dumps({**schema, "options": schema["options"] | {key: VALUES[key]}}))
    before = outcome(peer)
    catalog.table("shop.t").maintain()
    assert outcome(peer) == before

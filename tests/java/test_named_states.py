"""Options of a table that name a state: both show the same rows."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer

OPTIONS = [
    {"scan.snapshot-id": "2"},
    {"scan.tag-name": "a"},
    {"scan.version": "a"},
    {"scan.version": "1"},
    {"scan.version": "watermark-15"},
    {"scan.watermark": "15"},
    {"scan.timestamp-millis": "{millis}"},
    {"scan.timestamp": "{local}"},
    {"scan.mode": "compacted-full"},
    {"scan.mode": "latest"},
    {"scan.mode": "full"},
    {"scan.mode": "from-snapshot", "scan.tag-name": "a"},
    {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"},
    {"scan.file-creation-time-millis": "{file}"},
    {"scan.creation-time-millis": "{millis}"},
    {"scan.creation-time-millis": "1"},
    {"scan.creation-time-millis": "4000000000000"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_both_show_the_state_that_options_name(
    catalog: lake.Catalog, peer: JavaPeer, options: dict[str, str]
):
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"}
    )
    for number in (1, 2):
        table.write(pa.table({"id": [number]}), watermark=number * 10)
    table.tags.create("a", snapshot=1)
    table.compact()
    table.write(pa.table({"id": [3]}))
    millis = table.snapshots()[1].time_millis
    local = datetime.fromtimestamp(millis / 1000).isoformat(" ", "milliseconds")  # noqa: DTZ006
    values = {"millis": millis, "local": local, "file": table.snapshots()[2].time_millis}
    changes = [lake.set_option(key, text.format(**values)) for key, text in options.items()]
    catalog.alter_table("shop.orders", *changes)

    ours = catalog.table("shop.orders").scan().to_arrow()["id"].to_pylist()

    assert sorted(ours) == sorted(row[0] for row in peer.read("shop.orders").rows)

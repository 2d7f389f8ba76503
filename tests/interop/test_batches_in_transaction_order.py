"""pypaimon reads tables to which a batch was committed in transaction order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING")]


def rows(**names: str) -> pa.Table:
    return pa.table({"id": [int(key[1:]) for key in names], "name": list(names.values())})


def as_dict(found: pa.Table) -> dict[int, str]:
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("overwrite", ["table", None])
def test_a_stream_of_pypaimon_wins_over_a_batch_that_began_before(
    catalog, peer: Peer, overwrite, is_compacted
):
    options = {"bucket": "2"}
    table = catalog.create_table("shop.people", COLUMNS, primary_key=["id"], options=options)
    peer.write("shop.people", rows(_1="join", _2="amy", _4="dan"))
    position = table.position()
    peer.write("shop.people", rows(_1="john"))
    peer.write("shop.people", rows(_3="bob"))
    table.write(rows(_4="dan"), kinds=["-D"])
    if is_compacted:
        table.compact()
    batch = rows(_1="join-fixed", _2="AMY", _4="DAN", _9="zed")
    order = {"read_snapshot": position, "conflict": "transaction-order"}
    table.write(batch, overwrite=overwrite, **order)
    expected = {1: "john", 2: "AMY", 3: "bob", 9: "zed"}
    assert as_dict(table.scan().to_arrow()) == expected
    assert as_dict(peer.read("shop.people")) == expected
    peer.write("shop.people", rows(_2="amy again", _9="zoe"))
    table.compact()
    expected |= {2: "amy again", 9: "zoe"}
    assert as_dict(peer.read("shop.people")) == expected

"""``bin/demo`` makes a real table: pypaimon reads the same rows from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

DEMO = Path(__file__).resolve().parents[2] / "bin" / "demo.py"


def test_pypaimon_reads_the_table_of_the_demo(peer: Peer):
    subprocess.run([sys.executable, str(DEMO), "--warehouse", str(peer.warehouse)], check=True)
    orders = lake.open_table(f"{peer.warehouse}/shop.db/orders")
    rows = rows_of(orders.scan().to_arrow())
    assert rows
    assert_same_rows(rows_of(peer.read("shop.orders")), rows)

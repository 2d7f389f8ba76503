"""Eight processes commit to one table: in a bucket that decides races, and under a lock in one that
does not. ``COMMITS=50 bin/test conformance -- tests/conformance/test_many_writers.py`` makes
it fifty commits each.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import lakeformat as lake
from tests.conformance.faulty_bucket import faulty_bucket
from tests.conformance.processes import REPOSITORY
from tests.sampling import count

WRITERS = 8
COMMITS = count(2, 5, "COMMITS")

WRITE = """
import json, sys
import pyarrow as pa
import lakeformat as lake
from tests.forked import forked
warehouse, writers, commits, options = sys.argv[1], *map(json.loads, sys.argv[2:])
writer = forked(writers)
table = lake.open_catalog(warehouse, options=options).table("shop.orders")
for number in range(commits):
    rows = pa.table({"id": [writer * commits + number]})
    report = table.write(rows, commit=lake.CommitId(f"writer-{writer}", number))
    assert not report.replayed
"""


@pytest.fixture(params=["a bucket that decides", "a weak bucket under a lock"])
def place(request, tmp_path):
    """The warehouse and the options its catalog is opened with."""
    if request.param == "a bucket that decides":
        bucket, options = (request.getfixturevalue(n) for n in ("s3_bucket", "s3_options"))
        yield f"s3://{bucket}/wh", options
        return
    with faulty_bucket() as weak:
        weak.honours_conditions = False
        yield (
            "s3://lake/wh",
            {
                "s3.endpoint": weak.endpoint,
                "s3.access-key": "key-id",
                "s3.secret-key": "secret",
                "metastore": "jdbc",
                "uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
                "lock.enabled": "true",
            },
        )


@pytest.mark.sampled(1, among="eight processes commit to a bucket")
def test_no_row_is_lost_and_no_number_is_left_out(place):
    warehouse, options = place
    catalog = lake.open_catalog(warehouse, options=options)
    catalog.create_database("shop")
    retries = {"commit.max-retries": "1000", "commit.max-retry-wait": "500 ms"}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=retries)
    words = [warehouse, str(WRITERS), str(COMMITS), json.dumps(options)]
    subprocess.run([sys.executable, "-c", WRITE, *words], cwd=REPOSITORY, check=True)
    total = WRITERS * COMMITS
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(total))
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, total + 1))

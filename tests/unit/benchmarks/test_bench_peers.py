"""The comparison with other table formats: the work of each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import peer_upserts
from benchmarks.compact_peers import PHASES, write_batches


def test_ours_ends_with_the_newest_row_of_each_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batches(tmp_path, 4_000)
    newest: dict[int, dict[str, object]] = {}
    for path in sorted(tmp_path.glob("*.arrow")):
        with pa.OSFile(str(path), "rb") as source:
            batch = pa.ipc.open_file(source).read_all().to_pylist()
        newest |= {row["k"]: row for row in batch}
    peer_upserts.main("ours", tmp_path, tmp_path / "table")
    report = json.loads(capsys.readouterr().out)
    assert {*PHASES, "rows"} == {*report}
    assert report["rows"][:3] == [
        len(newest),
        str(sum(newest)),
        str(sum(row["amt"] for row in newest.values())),
    ]
    assert len(newest) == 3_000

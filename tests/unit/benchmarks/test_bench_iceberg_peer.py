"""The comparison of Iceberg plans: the work of this library, and the sample table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import peer_plans
from benchmarks.iceberg_plan_peer import DAY, SCANS
from benchmarks.sample_iceberg import FIRST_DAY, write_metadata_table


@pytest.mark.parametrize(("scan", "files"), [*zip(SCANS, [365, 1, 0, 0], strict=True)])
def test_ours_plans_the_files_of_each_scan(scan, files, tmp_path: Path, capsys) -> None:
    write_metadata_table(tmp_path, 365)
    peer_plans.main("ours", str(tmp_path), 1, scan.conditions)
    report = json.loads(capsys.readouterr().out)
    assert len(report["paths"]) == files
    assert report["peak"] > report["grown"]
    assert len(report["timings"]) == 1


def test_the_day_of_a_scan_is_a_day_of_the_table() -> None:
    assert datetime.fromtimestamp((FIRST_DAY + DAY) * 86_400, UTC).date().isoformat() in str(SCANS)

"""bin/demo tells its whole story with a real Airflow, and leaves nothing running."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_tells_its_story_and_ends_what_it_started(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, ROOT / "bin" / "demo.py", "--folder", tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.partition("Round 2")[2]
    orders, revenue = told.split("the revenue")
    assert re.findall(r"(\d+) +(\w+) +(\d+)\n", orders) == [
        ("1", "apple", "8"),
        ("2", "pear", "7"),
        ("3", "apple", "5"),
        ("5", "pear", "2"),
        ("6", "quince", "9"),
        ("7", "apple", "1"),
        ("8", "quince", "2"),
    ]
    assert re.findall(r"(\w+) +(\d+)\n", revenue)[:4] == [
        ("apple", "14"),
        ("pear", "9"),
        ("plum", "0"),
        ("quince", "11"),
    ]
    said = re.findall(r"(\w+) \(score \d+\), (\d+) files", done.stdout)
    assert said[:2] == [("degraded", "6"), ("healthy", "1")]
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in left.stdout

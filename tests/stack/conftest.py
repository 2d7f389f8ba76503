"""A whole Airflow for a test: the one bin/demo starts."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "bin"), str(Path(__file__).parent)]

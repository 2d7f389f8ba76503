"""The DAG of the README, exactly as it is printed there."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[3] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)

exec(next(block for block in BLOCKS if "from airflow.sdk import DAG" in block))

"""The first DAG of docs/assets.md, as Airflow would load it: exactly as it is printed there."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "assets.md"
TEXT, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

exec(compile(TEXT, str(PAGE), "exec"))

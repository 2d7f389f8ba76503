"""The DAGs of docs/tutorial.md, as Airflow would load them: exactly as they are printed there."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tutorial.md"
BLOCK = r'^```python title="airflow/dags/[^\n]+\n(.*?)^```$'
TEXT = "".join(re.findall(BLOCK, PAGE.read_text(), re.MULTILINE | re.DOTALL))

exec(compile(TEXT, str(PAGE), "exec"))

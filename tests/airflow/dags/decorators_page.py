"""The DAGs of docs/decorators.md, as Airflow would load them: exactly as they are printed there."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "decorators.md"
TEXT = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))

exec(compile(TEXT, str(PAGE), "exec"))

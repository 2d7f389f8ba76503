"""The DAG of docs/recipes.md that deletes duplicates, as Airflow would load it: exactly as it is
printed there.
"""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "recipes.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
[TEXT] = [each for each in BLOCKS if "find_duplicates" in each]

exec(compile(TEXT, str(PAGE), "exec"))

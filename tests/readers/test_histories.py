"""After each operation of a random history, other readers have exactly the rows of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.history import History
from tests.readers.known_limits import check_rows
from tests.readers.readers import Reader, rows_of
from tests.sampling import SEED, count

STEPS = count(12, 80, "STEPS")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_reader_has_the_rows_after_each_operation(
    tmp_path: Path, reader: Reader, version: int, mode: str
):
    history = History(str(tmp_path / "warehouse"), version, mode, f"{SEED} {version} {mode}")
    gaps = set()
    for _ in range(STEPS):
        history.step()
        assert rows_of(history.table.scan().to_arrow()) == history.expected(), history.done
        try:
            gaps.add(check_rows(reader, history.table, history.expected()))
        except BaseException as error:
            error.add_note(f"after {history.done}")
            raise
    if known := sorted(gaps - {""}):
        pytest.xfail("; ".join(known))

"""PyIceberg reads every published golden table, or ``docs/published-tables.md`` has the reason."""

from __future__ import annotations

import lakeformat as lake
from tests.conformance.publish.golden_matrix import PAGE, golden_copies, line_of, page
from tests.sampling import IS_WHOLE, sample


def test_the_page_about_published_golden_tables_is_true(tmp_path):
    written = PAGE.read_text(encoding="utf-8")
    if IS_WHOLE:
        assert written == page()
        return
    catalog = lake.open_catalog(str(tmp_path))
    names = [*golden_copies(tmp_path)]
    for each in sample(names, 10):
        assert f"{line_of(catalog, *each)}\n" in written


def test_no_golden_table_is_read_differently():
    written = PAGE.read_text(encoding="utf-8")
    assert "differs" not in written
    assert written.count("| equal") > 20

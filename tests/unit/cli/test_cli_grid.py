"""Rows for people: aligned, folded where a terminal ends, and quick however many there are."""

from __future__ import annotations

import re
import sys

import pytest

from lakeformat.cli import grid
from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.output import Shown, print_rows


@pytest.fixture
def lines(monkeypatch, capsys):
    """The output as lines without colour, for a file or a terminal of some width."""

    def shown(*columns: GridColumn, width: int | None = None) -> list[str]:
        if width is not None:
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
            monkeypatch.setenv("COLUMNS", str(width))
        print_grid(columns)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return shown


def test_columns_are_aligned_under_their_headings_without_trailing_blanks(lines):
    found = lines(
        GridColumn("name", ["apple", "fig"]),
        GridColumn("rows", ["7", "12"], True),
        GridColumn("", ["", "x"]),
    )
    assert found == ["name   rows", "apple     7", "fig      12  x"]


def test_a_character_that_takes_two_places_counts_as_two(lines):
    assert lines(GridColumn("a", ["日本", "x"]), GridColumn("b", ["1", "2"])) == [
        "a     b",
        "日本  1",
        "x     2",
    ]


def test_a_column_of_numbers_stays_one_where_a_number_is_absent(capsys):
    columns = [Shown("id", "id"), Shown("rows", "many rows")]
    print_rows(columns, {"id": ["a", "b"], "rows": [None, 5]}, empty="")
    assert capsys.readouterr().out.splitlines() == ["id  many rows", "a", "b           5"]


def test_the_widest_column_is_folded_until_all_fit_into_the_terminal(lines):
    found = lines(GridColumn("id", ["1"], True), GridColumn("file", ["x" * 40]), width=30)
    assert found == ["id  file", f" 1  {'x' * 26}", f"    {'x' * 14}"]


def test_words_are_folded_at_blanks(lines):
    found = lines(
        GridColumn("id", ["1"]), GridColumn("said", ["one two three four five"]), width=24
    )
    assert found == ["id  said", "1   one two three four", "    five"]


def test_nothing_is_folded_in_a_file(lines):
    assert lines(GridColumn("file", ["x" * 5000])) == ["file", "x" * 5000]


def test_a_line_end_begins_a_line_of_its_own_column(lines):
    assert lines(GridColumn("a", ["1"]), GridColumn("b", ["x\ny"])) == ["a  b", "1  x", "   y"]


def test_a_name_does_not_command_the_terminal(lines):
    assert lines(GridColumn("name", ["a\x1b[31mb", "tab\t"])) == ["name", "a\\x1b[31mb", "tab\\x09"]


BLOCK = [
    GridColumn("id", ["1", "2"], True),
    GridColumn("time", ["2026-01-01 10:00:00"] * 2),
    GridColumn("kind", ["APPEND", ""]),
    GridColumn("commit user", ["x" * 30] * 2),
]


def test_a_terminal_too_narrow_for_a_table_gets_a_block_per_row(lines):
    assert lines(*BLOCK, width=40) == [
        "id           1",
        "time         2026-01-01 10:00:00",
        "kind         APPEND",
        f"commit user  {'x' * 27}",
        f"             {'x' * 3}",
        "",
        "id           2",
        "time         2026-01-01 10:00:00",
        f"commit user  {'x' * 27}",
        f"             {'x' * 3}",
    ]


@pytest.mark.parametrize("width", [1, 10, 20])
def test_a_terminal_too_narrow_for_anything_gets_whole_lines(lines, width):
    assert lines(*BLOCK, width=width)[:4] == [
        "id           1",
        "time         2026-01-01 10:00:00",
        "kind         APPEND",
        f"commit user  {'x' * 30}",
    ]


def test_headings_and_marked_texts_are_styled_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("COLORTERM", "truecolor")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_grid(
        [GridColumn("a", ["ok", "no"], styles={"ok": "green"}), GridColumn("b", ["ok", "1"])]
    )
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[1ma\x1b[0m   \x1b[1mb\x1b[0m",
        "\x1b[32mok\x1b[0m  ok",
        "no  1",
    ]


@pytest.mark.parametrize("width", [80, 30])
def test_rich_is_asked_for_headings_however_many_rows_there_are(monkeypatch, lines, width):
    asked = []

    class CountedText(grid.Text):
        def __init__(self, *arguments, **more):
            asked.append(arguments)
            super().__init__(*arguments, **more)

    monkeypatch.setattr(grid, "Text", CountedText)
    texts = [f"data-{number:040}.parquet" for number in range(5000)]
    assert len(lines(GridColumn("id", texts), GridColumn("file", texts), width=width)) > 5000
    assert len(asked) == 2

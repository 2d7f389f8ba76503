"""Errors of commands name options, not arguments of Python."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from lakeformat.cli.app import app
from lakeformat.cli.wording import in_words_of_commands
from lakeformat.paimon.options import TableOptions
from lakeformat.types.duration_text import duration
from tests.lake_command import lake_ends


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("retain_max is 0, but must be", "--retain-max is 0, but must be"),
        ("limit is -1, but must be", "--limit is -1, but must be"),
        ("actions is ['x'], but must be", "--action is ['x'], but must be"),
        ("only one of snapshot=1, tag='x': each", "only one of --snapshot 1, --tag x: each"),
        ("with scan(snapshot=1), or", "with scan(snapshot=1), or"),
        ("limit must be a whole number of rows", "--limit must be a whole number of rows"),
        ("say retain_min=1, too", "say --retain-min 1, too"),
        ("pass exist_ok=True to accept that", "pass --exist-ok to accept that"),
        ("say expiration_time='7 d'", "say --older-than '7 d'"),
        (
            "by one of snapshot=, tag= and as_of=; got",
            "by one of --snapshot, --tag and --as-of; got",
        ),
        ("use mode='delta'", "use --mode delta"),
        ("pass format='mixed' and primary_key", "pass --mixed and --primary-key"),
        ("write delimiter=';' if", "write --delimiter ';' if"),
        ("create it with create_database('nodb')", "create it with `lake create-database nodb`"),
        ("run catalog.repair('shop.t')", "run `lake repair shop.t`"),
        ("snapshots() lists them", "`lake snapshots TABLE` lists them"),
        ("list_tables('shop') lists the tables there", "`lake tables` lists the tables there"),
        ("columns must name some of a, b", "--columns must name some of a, b"),
        ("call table.scan() or truncate()", "call table.scan() or truncate()"),
        ("call compact_deletes() (lake compact-deletes)", "call `lake compact-deletes TABLE`"),
        ("dry_run=False takes them out", "--remove takes them out"),
        ("more than max_share=50%: is it", "more than --max-share 50%: is it"),
        ("next_snapshot must be at least 1, got 0", "--next must be at least 1, got 0"),
        ("compact it without order_by. Nothing", "compact it without --order-by. Nothing"),
        ("whose compact does not take where: leave", "whose compact does not take --where: leave"),
        (
            "say alter_table(…, set_option('bucket', '4')) first",
            "say `lake set-option TABLE bucket='4'` first",
        ),
        ("pass merge=True (--merge), which does that", "pass --merge, which does that"),
        ("leave out abandon_changes (--abandon-changes)", "leave out --abandon-changes"),
        (
            "remove_orphans (lake orphans TABLE --remove) removes the files",
            "`lake orphans TABLE --remove` removes the files",
        ),
        ("table.consumers.set() creates", "`lake consumer set TABLE NAME --next NUMBER` creates"),
        ("table.consumers.reset(NAME), then", "`lake consumer reset TABLE NAME`, then"),
        ("table.consumers.reset('a b') deletes", "`lake consumer reset TABLE 'a b'` deletes"),
        (
            "call table.consumers.reset('a', next_snapshot=3), and",
            "call `lake consumer reset TABLE a --next 3`, and",
        ),
        (
            "drop it with drop_table('a.b') or `lake drop-table a.b`",
            "drop it with `lake drop-table a.b`",
        ),
        (
            "with create_table('a.b', …, format='mixed') or `lake create-table a.b --mixed …`",
            "with `lake create-table a.b --mixed …`",
        ),
        (
            "with drop_table('a.b', purge=True) or `lake --format iceberg drop-table a.b --purge`",
            "with `lake --format iceberg drop-table a.b --purge`",
        ),
    ],
)
def test_an_argument_is_called_by_its_option(said, told):
    assert in_words_of_commands(said, typer.main.get_command(app)) == told


@pytest.mark.parametrize(
    "said",
    [
        "column 'retain_max' is missing",
        "/shop.db/orders/dry_run=1/tag=v1",
        "partition tag=v1 is gone",
        "no_such_argument is 0",
        "as in table.order_by.name",
        "the key 'day(a)' does not take column 'a'",
        "open_table('x')",
    ],
)
def test_what_is_somebodys_own_stays(said):
    assert in_words_of_commands(said, typer.main.get_command(app)) == said


def test_the_program_says_it_so(tmp_path):
    words = ("create-table", "nodb.orders", "--column", "id BIGINT")
    code, _, error = lake_ends("-w", str(tmp_path), *words)
    assert code == 1
    assert f"create it with `lake -w {tmp_path} create-database nodb`" in error


def test_every_command_has_a_panel_in_the_help():
    shown = CliRunner().invoke(app, ["-h"]).output
    panels = ["Read", "Write", "Maintain", "Check and repair", "Catalog"]
    places = [shown.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    assert "─ Commands ─" not in shown
    assert "--install-completion" in shown


def test_every_command_says_what_it_does():
    program = typer.main.get_command(app)
    assert [name for name, command in program.commands.items() if not command.help] == []


def test_the_short_word_for_help_works_everywhere():
    for command in (["scan"], ["tag", "create"], ["partition"]):
        assert "Usage:" in CliRunner().invoke(app, [*command, "-h"]).output


def test_the_help_of_expire_says_what_it_does_when_nothing_is_said():
    shown = " ".join(CliRunner().invoke(app, ["expire", "--help"]).output.split())
    assert "Time travel and rollback to a deleted snapshot are no longer possible." in shown
    options = TableOptions({})
    assert f"snapshot.num-retained.min ({options.snapshot_num_retained_min})" in shown
    assert f"snapshot.expire.limit ({options.snapshot_expire_limit})" in shown
    assert f"snapshot.time-retained ({duration(options.snapshot_time_retained_millis)})" in shown

"""Commands in messages name the catalog that was typed, so that they can be copied."""

from __future__ import annotations

import shlex

import pytest
import typer

from lakeformat.cli.app import app
from lakeformat.cli.copyable import copyable

TEXT = "start it again, or lake maintain shop.orders --dry-run. The lake is deep"


def shown(words: list[str], text: str = TEXT, table: str | None = None) -> str:
    """The text after a command line of those words, up to the command's own arguments."""
    program = typer.main.get_command(app)
    with program.make_context("lake", words) as root:
        name, command, rest = program.resolve_command(root, [*root._protected_args, *root.args])
        with command.make_context(name, rest, parent=root) as context:
            return copyable(context, text, table)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["health", "shop"], ""),
        (["-w", "/a b", "health", "shop"], "-w '/a b' "),
        (["-w", "/a", "health", "shop", "-w", "/b"], "-w /b "),
        (["--metastore", "jdbc", "--uri", "sqlite:///x", "health", "shop"],
         "--metastore jdbc --uri sqlite:///x "),
        (["--catalog-option", "s3.region=eu", "--external-root", "/out", "health", "shop"],
         "--catalog-option s3.region=eu --external-root /out "),
        (["--catalog-option", "catalog-key=other", "health", "shop"],
         "--catalog-option catalog-key=other "),
    ],
    ids=lambda each: each if isinstance(each, str) else shlex.join(each),
)  # fmt: skip
def test_a_command_gets_the_words_that_name_the_catalog(words, options):
    assert shown(words) == TEXT.replace("lake maintain", f"lake {options}maintain")


def test_the_environment_is_not_repeated(monkeypatch):
    monkeypatch.setenv("LAKE_WAREHOUSE", "/a")
    assert shown(["health", "shop"]) == TEXT


@pytest.mark.parametrize(
    "words",
    [
        ["--catalog-option", "s3.secret-key=hush"],
        ["--catalog-option", "jdbc.password=hush"],
        ["--uri", "postgresql://ann:hush@db/lake"],
    ],
    ids=lambda each: each[1],
)
def test_a_secret_is_not_repeated(words):
    said = shown([*words, "health", "shop"])
    assert "hush" not in said
    assert "…" in said


@pytest.mark.parametrize(("typed", "named"), [("shop.orders", "shop.orders"), ("shop", "TABLE")])
def test_only_the_name_of_a_table_replaces_the_word_table(typed, named):
    assert shown(["missing-files", typed], "`lake scan TABLE`") == f"`lake scan {named}`"


@pytest.mark.parametrize("command", ["health", "compact"])
def test_a_table_named_by_its_directory_keeps_that_name(command):
    text = (
        "lake compact shop.orders, or lake consumer reset shop.orders x; lake compact shop.orders2"
    )
    assert shown([command, "/w/shop.db/orders"], text, "shop.orders") == (
        "lake compact /w/shop.db/orders, or lake consumer reset /w/shop.db/orders x; "
        "lake compact shop.orders2"
    )


@pytest.mark.parametrize(
    "directory", ["file:///w/orders", "'/w/my orders'", "s3://b/w/orders$base"]
)
def test_a_command_with_a_directory_does_not_look_up_names(directory):
    words = ["--format", "iceberg", "--metastore", "path", "--uri", "u", "--external-root", "/out",
             "-w", "/a", "health", "shop"]  # fmt: skip
    text = f"lake compact {directory} --strategy minor, or lake consumer reset {directory} x"
    assert shown(words, text) == text.replace("lake ", "lake --external-root /out ")


def test_a_command_with_a_warehouse_gets_no_second_one():
    text = "`lake --format iceberg detach db.t -w file:///w`, or `lake tables`"
    assert shown(["-w", "/w", "--external-root", "/out", "health", "shop"], text) == (
        "`lake --format iceberg --external-root /out detach db.t -w file:///w`, or "
        "`lake -w /w --external-root /out tables`"
    )


def test_words_that_are_no_command_stay():
    assert shown(["-w", "/a", "health", "shop"], "the lake house is far") == "the lake house is far"

"""The pages about upkeep name commands and options that are there, and leave no procedure out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from lakeformat.cli.app import app

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    "maintenance.md",
    "partitions.md",
    "transfer.md",
    "procedures.md",
    "troubleshooting.md",
)
PROCEDURES = """
    compact compact_database compact_chain_table compact_manifest
    materialize_deletion_vectors rescale rewrite_file_index
    create_global_index drop_global_index reassign_row_id
    expire_snapshots expire_changelogs expire_partitions expire_tags remove_orphan_files
    remove_unexisting_files remove_unexisting_manifests purge_files drop_partition
    create_tag create_tag_from_timestamp create_tag_from_watermark replace_tag rename_tag delete_tag
    trigger_tag_automatic_creation create_branch delete_branch rename_branch
    fast_forward merge_branch rollback rollback_to rollback_to_timestamp rollback_to_watermark
    rollback_to_as_latest reset_consumer clear_consumers
    repair repair_earliest_snapshot mark_partition_done migrate_database migrate_table clone copy
    copy_files merge_into delete data_evolution_merge_into query_service vector_search
    full_text_search alter_view_dialect create_function alter_function drop_function
    alter_column_default_value
"""


def commands_in(page: str) -> Iterator[str]:
    """The commands in code, in a line of their own or within one."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("    lake "):
            yield line.strip().partition("#")[0].strip()
    yield from re.findall(r"`(lake [^`]+)`", text)


@cache
def lake_command() -> typer.core.TyperGroup:
    return typer.main.get_command(app)


def known_options(words: list[str]) -> set[str]:
    """The options of the command that the words begin with."""
    command = lake_command()
    context = typer.Context(command, info_name="lake")
    while words[0].startswith("--"):  # of every command, with its value
        assert words[0] in {option for each in command.get_params(context) for option in each.opts}
        del words[:2]
    while isinstance(command, typer.core.TyperGroup):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name!r}"
        command, context = found, typer.Context(found, info_name=name, parent=context)
    parameters = command.get_params(context)
    return {
        option
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_on_a_page_is_there(page):
    found = [*commands_in(page)]
    assert found
    for text in found:
        if "COMMAND" in text:
            continue
        words = text.split()[1:]
        options = known_options(words)
        for word in words:
            if word.startswith("--"):
                assert word in options, text


def test_every_procedure_has_a_line_with_a_command_or_a_reason():
    text = (DOCS / "procedures.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    named = {name: row[1] for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])}
    assert sorted(named) == sorted(PROCEDURES.split())
    for name, answer in named.items():
        assert "`" in answer or "not planned, because" in answer or "not planned, for" in answer, (
            name
        )

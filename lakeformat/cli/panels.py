# SPDX-License-Identifier: Apache-2.0
"""The groups of commands ("panels") in the help of ``lake``."""

from __future__ import annotations

import inspect
import re

import typer
from typer.main import get_command_name

from lakeformat.cli.copyable import LakeCommand

__all__ = ["arrange"]

_PANELS = {
    "Read": (
        "tables snapshots schemas options manifests files partitions buckets tags branches "
        "consumers statistics indexes scan changes"
    ),
    "Write": "write delete update rollback tag branch consumer",
    "Maintain": (
        "maintain compact compact-database changelog expire partition analyze rewrite-manifests "
        "compact-deletes rewrite-file-index rescale publish"
    ),
    "Check and repair": (
        "health plan check doctor end-batch orphans missing-files missing-manifests repair-hints "
        "repair"
    ),
    "Catalog": (
        "create-database create-table set-option unset-option drop-database drop-table "
        "rename-table migrate clone clone-database adopt detach"
    ),
    "Clusters": "package",
}


def arrange(app: typer.Typer) -> None:
    """Set the panel and the class ``LakeCommand`` of each command, and order commands by panel.

    Line ends inside a paragraph of help are removed, because a terminal may be narrower than the
    source.
    """
    place = {name: panel for panel, names in _PANELS.items() for name in names.split()}
    order = [*_PANELS]
    for command in app.registered_commands:
        name = command.name or get_command_name(getattr(command.callback, "__name__", ""))
        command.name, command.rich_help_panel = name, place[name]
        command.help = _flowing(command.help or command.callback.__doc__)
        command.cls = LakeCommand
    for group in app.registered_groups:
        group.rich_help_panel = place[str(group.name)]
        for command in group.typer_instance.registered_commands if group.typer_instance else ():
            command.help = _flowing(command.help or command.callback.__doc__)
            command.cls = LakeCommand
    app.registered_commands.sort(key=lambda each: order.index(str(each.rich_help_panel)))


def _flowing(text: str | None) -> str | None:
    """Join the lines of each paragraph of a help text; an example becomes its own paragraph."""
    if text is None:
        return None
    paragraphs = inspect.cleandoc(text).split("\n\n")
    flowing = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return re.sub(r" (An example: )", r"\n\n\1", flowing)

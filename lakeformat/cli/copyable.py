# SPDX-License-Identifier: Apache-2.0
"""Completes commands in a message with the catalog options that were typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import chain

import typer
from typer.core import TyperGroup

__all__ = ["copyable"]

_COMMAND = re.compile(r"\blake ([a-z]+(?:-[a-z]+)*)(?= )")
_BEFORE = r"(\blake [a-z-]+ (?:[a-z]+ )?)"
"""The words before the name of a table, as in ``lake consumer reset``."""
_ADDRESS = re.compile(r" (?:[a-z]+ )?'?(?:[a-z][a-z0-9+.-]*:)?/")
"""The words from a command to the directory of a table."""
_OF_NAMES = frozenset(("-w", "--format", "--metastore", "--uri"))
"""The options with which a name is looked up; a command with a directory refuses most of them."""
_SECRET = frozenset(
    ("credential", "credentials", "key", "passwd", "password", "sas", "secret", "token")
)
_OPTIONS = {
    "warehouse": "-w",
    "format": "--format",
    "metastore": "--metastore",
    "uri": "--uri",
    "catalog_option": "--catalog-option",
    "external_root": "--external-root",
}


def copyable(context: typer.Context, text: str, table: str | None = None) -> str:
    """Return the text with catalog options added to its commands, so that you can copy and run
    them.

    Options from the environment are left out. A secret is shown as ``…``. ``table`` is the name of
    the table in the text. If the user typed the directory of the table, the commands get the
    directory. A command with a directory does not get the options with which names are looked up.
    """
    root = context.find_root()
    names = root.command.commands if isinstance(root.command, TyperGroup) else {}
    given = [*_given(context)]

    def with_catalog(found: re.Match[str]) -> str:
        if found[1] not in names:
            return found[0]
        is_address = _ADDRESS.match(found.string, found.end()) is not None
        options = (each for each in given if not (is_address and each[0] in _OF_NAMES))
        return shlex.join(["lake", *chain.from_iterable(options), found[1]])

    name = context.params.get("name", context.params.get("table"))
    if table is not None and name is not None and "/" in name:
        word = re.compile(_BEFORE + re.escape(shlex.quote(table)) + r"(?![\w$-])")
        text = word.sub(lambda found: found[1] + shlex.quote(name), text)
    return _COMMAND.sub(with_catalog, text)


def _given(context: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield the typed options that name the catalog, each with its value.

    A warehouse may be typed before or after the command; the one after the command wins. All other
    options are typed before the command.
    """
    for parameter, option in _OPTIONS.items():
        for place in (context, context.find_root()):
            source, value = place.get_parameter_source(parameter), place.params.get(parameter)
            if getattr(source, "name", "") == "COMMANDLINE" and value is not None:
                for each in [value] if isinstance(value, str) else value:
                    yield option, _shown(each, is_setting=parameter == "catalog_option")
                break


def _shown(value: str, *, is_setting: bool) -> str:
    key, _, _ = value.partition("=")
    if is_setting and _SECRET & set(re.split(r"[._-]", key.lower())):
        return f"{key}=…"
    from lakeformat.storage.shown import without_credentials

    return without_credentials(value)

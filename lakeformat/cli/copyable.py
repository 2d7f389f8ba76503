# SPDX-License-Identifier: Apache-2.0
"""Completes commands in a message with the catalog options that were typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from lakeformat.cli.wording import in_words_of_commands
from lakeformat.errors import LakeError

__all__ = ["LakeCommand", "copyable", "worded"]

_COMMAND = re.compile(r"\blake (--format iceberg )?([a-z]+(?:-[a-z]+)*)(?=[ `])")
_BEFORE = r"(\blake [a-z-]+ (?:[a-z]+ )?)"
"""Matches the words before the name of a table, as in ``lake consumer reset``."""
_ADDRESS = re.compile(r" (?:[a-z]+ )?'?(?:[a-z][a-z0-9+.-]*:)?/")
"""Matches the text between a command and the directory of a table."""
_WAREHOUSE = re.compile(r"[^`\n]* -w ")
"""Matches the text between a command and the value of its option ``-w``."""
_OF_NAMES = frozenset(("-w", "--format", "--metastore", "--uri"))
"""The options that are left out of a command with the directory of a table."""
_SECRET = frozenset(
    ("credential", "credentials", "key", "passwd", "password", "sas", "secret", "token")
)
_NOT_SECRET = frozenset(("catalog-key", "lock-key-max-length"))
_OPTIONS = {
    "warehouse": "-w",
    "format": "--format",
    "metastore": "--metastore",
    "uri": "--uri",
    "catalog_option": "--catalog-option",
    "external_root": "--external-root",
}


class LakeCommand(TyperCommand):
    """A command of ``lake`` that keeps the context in which it failed, for the error's message."""

    failed: ClassVar[typer.Context | None] = None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; if it raises a ``LakeError``, store the context in ``failed``."""
        try:
            return super().invoke(ctx)
        except LakeError:
            LakeCommand.failed = ctx
            raise


def worded(context: typer.Context, text: str, table: str | None = None) -> str:
    """Return ``text`` with options and commands instead of Python arguments and calls.

    Catalog options are added to the commands, as by ``copyable``.
    """
    return copyable(context, in_words_of_commands(text, context.find_root().command), table)


def copyable(context: typer.Context, text: str, table: str | None = None) -> str:
    """Return the text with catalog options added to its commands, so that you can copy and run
    them.

    Options from the environment are left out. A secret is shown as ``…``. If the user typed the
    name or the directory of a table, that text replaces the word ``TABLE`` in the commands.

    ``table`` is the name that ``text`` uses for the typed table. If the user typed the directory of
    the table, the directory also replaces this name. The options ``-w``, ``--format``,
    ``--metastore`` and ``--uri`` are not added to a command with a directory.
    """
    root = context.find_root()
    names = root.command.commands if isinstance(root.command, TyperGroup) else {}
    given = [*_given(context)]

    def with_catalog(found: re.Match[str]) -> str:
        if found[2] not in names:
            return found[0]
        is_address = _ADDRESS.match(found.string, found.end()) is not None
        has_warehouse = _WAREHOUSE.match(found.string, found.end()) is not None
        left_out = _OF_NAMES if is_address else {"-w"} if has_warehouse else frozenset()
        options = [each for each in given if each[0] not in left_out]
        if found[1] and not is_address and "--format" not in dict(options):
            options.insert(0, ("--format", "iceberg"))
        return shlex.join(["lake", *chain.from_iterable(options), found[2]])

    typed = context.params.get("name", context.params.get("table"))
    if isinstance(typed, str) and ("." in typed or "/" in typed):
        shown = ["TABLE"] if table is None or "/" not in typed else ["TABLE", shlex.quote(table)]
        for each in shown:
            word = re.compile(_BEFORE + re.escape(each) + r"(?![\w$-])")
            text = word.sub(lambda found: found[1] + shlex.quote(typed), text)
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
    is_secret = key not in _NOT_SECRET and _SECRET & set(re.split(r"[._-]", key.lower()))
    if is_setting and is_secret:
        return f"{key}=…"
    from lakeformat.storage.shown import without_credentials

    return without_credentials(value)

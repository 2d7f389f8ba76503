# SPDX-License-Identifier: Apache-2.0
"""Replaces Python arguments in the library's errors by options of commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from typer.core import TyperGroup

__all__ = ["in_words_of_commands"]

_OTHER_NAMES = {
    "actions": "--action",
    "by": "--upsert-by",
    "expiration_time": "--older-than",
    "max_num": "--max",
    "next_snapshot": "--next",
}
_NAME = r"(?<![\w'\"`/.$=-])([a-z]+(?:_[a-z]+)*)"
_CALL = re.compile(r"(?<![\w'\"`/.$=-])(?:catalog\.)?([a-z]+(?:_[a-z]+)*)\('([^']*)'\)")
_EMPTY_CALL = re.compile(r"(?<![\w'\"`/.$=-])([a-z]+(?:_[a-z]+)*)\(\)(?: \(lake [a-z-]+\))?")
_SETTING = re.compile(r"alter_table\(…, set_option\('([^']*)', '([^']*)'\)\)")
_FIRST = re.compile(r"^([a-z]+)(?= (?:is|must be|must name) )")
_REMOVE = re.compile(r"(?<![\w'\"`/.$=-])dry_run=False\b")
_VALUE = re.compile(_NAME + r"=(True\b|'[^']*'|(?=[\s,;)]|$))")
_NUMBER = re.compile(r"(?<![\w'\"`/.$=-])([a-z]+(?:_[a-z]+)+)=([\d.%]*\d%?)")
_SNAPSHOT = re.compile(r"(?<![\w'\"`/.$=(-])(snapshot)=(\d+)\b")
_BARE = re.compile(r"(?<![\w'\"`/.$=-])([a-z]+(?:_[a-z]+)+)(?![\w=(/]|\.\w)")
_REFUSED = re.compile(r"(?<=does not take )([a-z]+)(?=[:,])")
_BESIDE = re.compile(
    r"\b([a-z]+(?:_[a-z]+)*)\([^()`]*\) or (?=`lake (?:--[a-z-]+ [a-z]+ )*([a-z-]+) )"
)
"""A call followed by a command, in a message that names both."""
_NAMED = re.compile(r"\b[a-z]+(?:_[a-z]+)+ \((lake [^()`]*)\)")
"""A method followed by its command in parentheses."""
_CONSUMER = re.compile(
    r"\btable\.consumers\.(reset|set)\((?:'([^']*)'|NAME)?(?:, next_snapshot=(\d+))?\)"
)
_LIST_OF_TABLES = re.compile(r"\blist_tables\('[^']*'\)")
_TWICE = re.compile(r"(--[a-z-]+) \(\1\)")


def in_words_of_commands(text: str, program: Any) -> str:
    """Return ``text`` with Python arguments and calls as options and commands of ``program``.

    For example, ``retain_max=1`` becomes ``--retain-max 1`` if a command has this option.
    Names in quotes and in paths are not changed, because they are names that the user chose.
    """
    options = {option[2:].replace("-", "_"): option for option in _options(program)}
    options |= _OTHER_NAMES
    commands = {name.replace("-", "_"): name for name in _names(program)}

    def replaced(show: Callable[[str, str], str]) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            option = options.get(found[1])
            return found[0] if option is None else show(option, found[found.re.groups])

        return replace

    def called(found: re.Match[str]) -> str:
        command = commands.get(found[1])
        return found[0] if command is None else f"`lake {command} {found[2]}`"

    def called_alone(found: re.Match[str]) -> str:
        command = commands.get(found[1])
        if command is None:
            return found[0]
        of_table = any(each.name == "table" for each in program.commands[command].params)
        return f"`lake {command}{' TABLE' if of_table else ''}`"

    def beside(found: re.Match[str]) -> str:
        return "" if commands.get(found[1]) == found[2] else found[0]

    text = _BESIDE.sub(beside, text).replace("format='mixed'", "--mixed")
    text = _NAMED.sub(r"`\1`", text)
    text = _CONSUMER.sub(_of_consumer, text)
    text = _LIST_OF_TABLES.sub("`lake tables`", text)
    text = _CALL.sub(called, text)
    text = _EMPTY_CALL.sub(called_alone, text)
    text = _REMOVE.sub("--remove", text)
    text = _VALUE.sub(replaced(_with_value), text)
    text = _NUMBER.sub(replaced(lambda option, value: f"{option} {value}"), text)
    text = _SNAPSHOT.sub(replaced(lambda option, value: f"{option} {value}"), text)
    text = _BARE.sub(replaced(lambda option, _: option), text)
    text = _REFUSED.sub(replaced(lambda option, _: option), text)
    text = _FIRST.sub(replaced(lambda option, _: option), text)
    text = _TWICE.sub(r"\1", text)
    return _SETTING.sub(r"`lake set-option TABLE \1='\2'`", text)


def _of_consumer(found: re.Match[str]) -> str:
    command, consumer, number = found.groups()
    name = "NAME" if consumer is None else shlex.quote(consumer)
    progress = f" --next {number or 'NUMBER'}" if number or command == "set" else ""
    return f"`lake consumer {command} TABLE {name}{progress}`"


def _with_value(option: str, value: str) -> str:
    if value in ("True", ""):
        return option
    return f"{option} {shlex.quote(value.strip(chr(39)))}"


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (option for option in parameter.opts if option.startswith("--"))
        yield from (option for option in parameter.secondary_opts if option.startswith("--"))
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            yield from _options(each)


def _names(command: Any) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        yield from command.commands

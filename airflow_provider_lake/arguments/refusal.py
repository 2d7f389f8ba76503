# SPDX-License-Identifier: Apache-2.0
"""The message about a wrong argument: the allowed values, the given value, and a correction.

Imported only for a wrong argument.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, Union, get_args, get_origin

from airflow_provider_lake.arguments.open_values import has_template, sources_of
from airflow_provider_lake.arguments.values import fits, readings
from lakeformat.types.closest import closest
from spark_jobs.job_requests.request import alternatives, is_moment, shown

__all__ = ["in_words_of_a_dag", "refusal_of"]

_TIME, _MILLIS = "a time such as '2024-01-31 10:00'", "epoch milliseconds"
_WORDS = {
    str: "a non-empty str",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    datetime: "a datetime",
}
_KEY = re.compile(r"\bkey(s?)(?= ')|(?<=of the )key(s)\b")
_JSON_WORDS = {
    "an object of": "a dict of",
    "an object with": "a dict with",
    "the object is empty": "the dict is empty",
    "argument 'executor'": "argument 'bucket_executor'",
    " to false": " to False",
}
_PLAIN = (str, int, float, date, timedelta, type(None))
_FRAMES = ("DataFrame", "Table", "RecordBatch", "Series")
_UNITS = {"idle": " h"}
"""The unit that the advice adds to a number, by argument; other arguments need none."""
_WITHOUT_AGE = ("as_of", "at_or_after", "running_since")
"""Arguments that take a time, but not an age such as ``"7 d"``."""
_WHOLE_RESULT = "return_value"
_DICT, _OF_STR = "{'name': 'value'}", {str: " of str"}
_PARTITION = "{'dt': '2024-01-31'}"


def refusal_of(name: str, hint: Any, value: Any, *, before: object = None) -> str:
    """Return the message about the value of the argument ``name``, which must be of the type
    ``hint``.

    ``before`` is the template, or the reference to a task's result, that gave the value.
    """
    return f"argument {name!r} must be {_in_words(hint, name)}, {_given(hint, value, before)}" + (
        _next_step(name, hint, value, before)
    )


def in_words_of_a_dag(reason: object) -> str:
    """Return the message of a refused request in the words of a DAG file: "argument" in place of
    "key", and Python's words, such as ``False``, in place of those of JSON.
    """
    text = _KEY.sub(lambda found: f"argument{found[1] or found[2] or ''}", str(reason))
    for word, meant in _JSON_WORDS.items():
        text = text.replace(word, meant)
    return text


def _given(hint: Any, value: Any, before: object) -> str:
    found = _shown(hint, value)
    if sources := sources_of(before):
        returned = None if value == [None] else found
        return f"but task {sources[0][0]!r} returned {returned}"
    return f"but its template renders to {found}" if has_template(before) else f"got {found}"


def _shown(hint: Any, value: Any) -> str:
    if _is_task(value):
        return f"task {value.task_id!r}"
    if isinstance(value, dict):
        return _members(hint, value)
    if isinstance(value, list | tuple) and not all(isinstance(each, _PLAIN) for each in value):
        return "a list"
    if isinstance(value, (list, tuple, bytes, *_PLAIN)):
        return shown(hint, value)
    return f"a {type(value).__name__}"


def _members(hint: Any, value: Mapping[Any, Any]) -> str:
    """Return the part of a message about a wrong dict: the names of its wrong members, but not
    their values, which may be secrets.
    """
    wrong = {key: each for key, each in value.items() if not fits(hint, {key: each})} or value
    words = [f"{key!r}{_kind_of_member(each)}" for key, each in wrong.items()]
    return f"a dict with {', '.join(words) or 'nothing in it'}"


def _kind_of_member(value: Any) -> str:
    if value == "":
        return " empty"
    return "" if isinstance(value, str) else f" as {type(value).__name__}"


def _next_step(name: str, hint: Any, value: Any, before: object) -> str:
    """Return the end of an error message, which advises how to correct ``value``; empty if no
    advice is known. ``before`` is the template or the task result that gave the value; None if it
    was written in the DAG.
    """
    if sources := sources_of(before):
        return _about_result(*sources[0], value)
    if _is_task(value):
        output = f"{value.task_id}.output"
        return f": write {output} for the task's result, or {output}['name'] for one member of it"
    if isinstance(value, str):
        advice = _about_text(hint, value) if before is None else ""
        return advice or _example_of_dict(name, hint)
    if isinstance(value, list | tuple):
        return _about_list(name, hint, value) or _example_of_dict(name, hint)
    if type(value).__name__ in _FRAMES:
        return ": to write rows, return them from a function with @task.lake_commit"
    if isinstance(value, dict) and _holds_lists(hint):
        return ": write a list for each name, such as {'name': ['value']}, also for a single value"
    if isinstance(value, dict) and any(isinstance(each, date) for each in value.values()):
        return ": write times as str, such as '2024-01-31'"
    if isinstance(value, int | float | date) and fits(hint, str(value)):
        return f": write {str(value) + _UNITS.get(name, '')!r}"
    return ""


def _about_result(task_id: str, key: str, value: Any) -> str:
    if value is None or value == [None]:
        return ": that task was skipped, or has no such result"
    if isinstance(value, dict) and key == _WHOLE_RESULT:
        return f": name one member, such as {task_id}.output[{next(iter(value), 'name')!r}]"
    return ""


def _about_text(hint: Any, value: str) -> str:
    """Return advice for text that was given instead of a value of the type ``hint``; empty without
    advice.
    """
    kinds = alternatives(hint)
    choices = [each for kind in kinds if get_origin(kind) is Literal for each in get_args(kind)]
    if near := closest(value, choices):
        return near
    if any(fits(hint, each) for each in readings(hint, value)):
        return ": leave out the quotes"
    if value.strip() and fits(hint, [value]):
        return f": write {[value]!r}"
    return ""


def _example_of_dict(name: str, hint: Any) -> str:
    if not any(get_origin(kind) is Mapping for kind in alternatives(hint)):
        return ""
    return f": write {_PARTITION if name.startswith('partition') else _DICT}"


def _about_list(name: str, hint: Any, value: Sequence[Any]) -> str:
    if len(value) == 1 and fits(hint, value[0]):
        return ": leave out the brackets"
    if len(value) > 1 and all(fits(hint, each) for each in value):
        return f": for one task per value, write .partial(…).expand({name}=[…])"
    if any(map(_is_task, value)):
        return ": write the results of tasks, such as first.output['staged']"
    return ""


def _is_task(value: Any) -> bool:
    return hasattr(value, "task_id") and hasattr(value, "output")


def _holds_lists(hint: Any) -> bool:
    dicts = [each for each in alternatives(hint) if get_origin(each) is Mapping]
    return bool(dicts) and all(get_origin(get_args(each)[1]) is Sequence for each in dicts)


def _in_words(hint: Any, name: str = "") -> str:
    origin = get_origin(hint)
    if is_moment(hint):
        if name in _WITHOUT_AGE or datetime in alternatives(hint):
            return f"{_TIME} or {_MILLIS}"
        return f"{_TIME}, an age such as '7 d', or {_MILLIS}"
    if origin in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return " or ".join(dict.fromkeys(_in_words(part) for part in parts))
    if origin is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if origin is Callable:
        return "a function"
    if origin is Mapping:
        return "a dict" + (
            " of lists" if _holds_lists(hint) else _OF_STR.get(get_args(hint)[1], "")
        )
    if origin is Sequence:
        return f"a list, each item {_in_words(get_args(hint)[0])}"
    return _WORDS.get(hint, str(hint))

# SPDX-License-Identifier: Apache-2.0
"""Open values, which are known only when the task runs: templates, and results of other tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from airflow_provider_lake.compat import is_resolved_later

__all__ = ["faults_of", "has_template", "is_open", "is_template", "rendered_texts", "sources_of"]

_TEMPLATE_MARKS = ("{{", "{%", "{#")
# The whole result, and the XComs for the web pages.
_FURTHER_KEYS = ("return_value", "lake_table", "lake_spark")
# An f-string turns "{{ ds }}" into "{ ds }", which is not a template any more.
_SINGLE_BRACES = re.compile(
    r"(?<!\{)\{\s*(?:ds|ts|run_id|logical_date|dag_run|params|ti|task_instance|var|conn|macros"
    r"|(?:ds|ts)_\w+|(?:data_interval|prev)_\w+)\b[^{}]*\}(?!\})"
)


def is_template(value: Any) -> bool:
    """Return True for text with the marks of a Jinja template."""
    return isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS)


def is_open(value: Any) -> bool:
    """Return True if a value is a template or a reference to a task's result, or contains one."""
    return any(is_resolved_later(each) or is_template(each) for each in _leaves(value))


def has_template(value: Any) -> bool:
    """Return True if a value is, or contains, a template."""
    return any(map(is_template, _leaves(value)))


def faults_of(value: Any) -> Iterator[str]:
    """Yield a text for each fault of ``value``. In a message, the text follows the argument's name.

    Faults are braces that form no template, and a reference to a task's result if that task has no
    such result.
    """
    for each in _leaves(value):
        if isinstance(each, str):
            yield from _faults_of_text(each)
        elif is_resolved_later(each):
            yield from _faults_of_result(each)


def sources_of(value: Any) -> list[tuple[str, str]]:
    """Return the task id and the key of each task result to which a value refers."""
    return [
        (task.task_id, key)
        for each in _leaves(value)
        if is_resolved_later(each)
        for task, key in each.iter_references()
    ]


def rendered_texts(before: Any, value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield a pair for each template in ``before``: its place, and its rendered text in ``value``.

    The place is a part of a message, such as `` in 'dt'`` for the key ``dt`` of a dict. It is empty
    outside of a dict.
    """
    if isinstance(before, dict) and isinstance(value, dict):
        for key, each in before.items():
            yield from rendered_texts(each, value.get(key), f" in {key!r}")
    elif isinstance(before, list | tuple) and isinstance(value, list | tuple):
        for template, each in zip(before, value, strict=False):
            yield from rendered_texts(template, each, place)
    elif is_template(before) and isinstance(value, str):
        yield place, value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _faults_of_text(text: str) -> Iterator[str]:
    if (found := _SINGLE_BRACES.search(text)) is not None:
        template = f"{{{found[0]}}}"
        yield (
            f"has {found[0]!r}, which is not a template: write {template!r}, and in an f-string "
            f"{template.replace('{', '{{').replace('}', '}}')!r}"
        )
    elif "{%" not in text and text.count("{{") > text.count("}}"):
        yield f"is {text!r}, which opens a template and does not close it: write }}}} after it"


def _faults_of_result(value: Any) -> Iterator[str]:
    for task, key in value.iter_references():
        known = getattr(task, "result_members", ())
        if known and key not in (*known, *_FURTHER_KEYS):
            from lakeformat.types.closest import closest  # only for a message

            meant = closest(key, known) or f": it has {', '.join(known)}"
            yield f"is result {key!r} of task {task.task_id!r}, which has no such result{meant}"

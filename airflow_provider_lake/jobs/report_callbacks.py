# SPDX-License-Identifier: Apache-2.0
"""Calls the functions in the argument ``on_report`` with the result of a task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from airflow_provider_lake.arguments.task_arguments import OnReport

__all__ = ["call_back"]

_log = logging.getLogger(__name__)


def call_back(on_report: OnReport | Sequence[OnReport], result: Mapping[str, Any]) -> None:
    """Call each function with a copy of the result. An error of a function is only logged, because
    the work is done.
    """
    for function in on_report if isinstance(on_report, Sequence) else [on_report]:
        try:
            function(deepcopy(dict(result)))
        except Exception as reason:  # noqa: BLE001 - any error of the author's function
            name = getattr(function, "__name__", type(function).__name__)
            _log.warning(
                "on_report: %s failed with %s: %s; the result of the task does not change",
                name,
                type(reason).__name__,
                reason,
            )

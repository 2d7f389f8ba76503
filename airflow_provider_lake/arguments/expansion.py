# SPDX-License-Identifier: Apache-2.0
"""Mapped tasks: the values that the DAG file gives to them are checked when the DAG is parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CheckedExpansion"]


class CheckedExpansion:
    """The object that ``partial`` returns. It checks values when the DAG is parsed.

    Without this check, a mapped task with a wrong value would fail only when the task runs.
    """

    def __init__(
        self, task_id: str, stock: Any, check: Callable[[Mapping[str, Any]], object]
    ) -> None:
        self._task_id = task_id
        self._stock = stock
        self._check = check

    def expand(self, **mapped: Any) -> Any:
        """Map the task over lists of values, and return Airflow's mapped operator.

        Raise ``LakeArgumentError`` for a wrong value, and ``TypeError`` for text instead of a list,
        or arguments that Airflow refuses.
        """
        for name, values in mapped.items():
            if isinstance(values, str):
                raise TypeError(
                    f"task {self._task_id!r}: expand({name}=…) takes a list, "
                    f"one value for each task, got {values!r}: write [{values!r}]"
                )
            for value in values if isinstance(values, list | tuple) else ():
                self._check({name: value})
        try:
            return self._stock.expand(**mapped)
        except (TypeError, ValueError) as reason:  # Airflow does not name the task
            raise TypeError(f"task {self._task_id!r}: {reason}") from reason

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> Any:
        """Map the task over dicts of arguments, and return Airflow's mapped operator.

        Raise ``LakeArgumentError`` for a wrong value.
        """
        for given in kwargs if isinstance(kwargs, list | tuple) else ():
            if isinstance(given, Mapping):
                self._check(given)
        return self._stock.expand_kwargs(kwargs, strict=strict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stock, name)

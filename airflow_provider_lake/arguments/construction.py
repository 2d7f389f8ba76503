# SPDX-License-Identifier: Apache-2.0
"""The construction of operators, when a DAG is parsed and when a mapped task starts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_lake.arguments.declared import (
    LakeArgumentError,
    all_arguments,
    refuse_unknown,
)

__all__ = ["RefusingConstruction"]

_Made = TypeVar("_Made")


class RefusingConstruction(BaseOperatorMeta):
    """The metaclass of operators: raises ``LakeArgumentError`` for an unknown or missing argument.

    Airflow constructs the operator of a mapped task only when the task runs. ``LakeArgumentError``
    then fails the task without a retry, which would fail the same way.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature with all arguments of an operator, those of its own class first."""
        return inspect.Signature([*all_arguments(cls).values()])

    def __call__(cls: type[_Made], *args: Any, **given: Any) -> _Made:
        """Construct an operator; raise ``LakeArgumentError`` for wrong arguments."""
        kind: Any = cls
        try:
            made: _Made = super(RefusingConstruction, kind).__call__(*args, **given)
        except LakeArgumentError:
            raise
        except (TypeError, ValueError) as reason:
            _refuse_named_in(str(reason), kind, given)
            why = str(reason).removeprefix("BaseOperator.__init__() ")
            raise LakeArgumentError(f"{_whose(kind, given)}: {why}") from reason
        return made


def _refuse_named_in(reason: str, operator: type[Any], given: Mapping[str, Any]) -> None:
    """Raise ``LakeArgumentError`` if ``reason``, a message of Airflow, names an unknown
    argument.
    """
    refuse_unknown(operator, given.get("task_id"), [name for name in given if repr(name) in reason])


def _whose(operator: type[Any], given: Mapping[str, Any]) -> str:
    task_id = given.get("task_id")
    return operator.__name__ if task_id is None else f"task {task_id!r}"

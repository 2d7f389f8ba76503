"""Construction of operators, when a DAG is parsed and when a mapped task starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_lake.arguments import LakeArgumentError, argument_names

__all__ = ["RefusingConstruction"]


class RefusingConstruction(BaseOperatorMeta):
    """A metaclass that reports wrong arguments of an operator as a mistake of the DAG's author.

    Airflow constructs the operator of a mapped task when the task runs. So an unknown or missing
    argument is only found then, and every retry would find it again.
    """

    def __call__(cls, *args: Any, **given: Any) -> Any:
        """Construct an operator; an error names the task, and the task is not retried."""
        try:
            return super().__call__(*args, **given)
        except LakeArgumentError:
            raise
        except (TypeError, ValueError) as reason:
            why = _unknown_argument(cls, given, str(reason)) or reason
            raise LakeArgumentError(f"task {given.get('task_id')!r}: {why}") from reason


def _unknown_argument(operator: type, given: Mapping[str, Any], reason: str) -> str | None:
    """Return a sentence about the first argument that no constructor of an operator has."""
    from lakeformat.types.closest import closest

    known = {
        name
        for each in operator.__mro__
        if "__init__" in vars(each)
        for name in argument_names(vars(each)["__init__"])
    }
    unknown = [name for name in given if name not in known and repr(name) in reason]
    if not unknown:
        return None
    return f"{operator.__name__} has no argument {unknown[0]!r}{closest(unknown[0], known)}"

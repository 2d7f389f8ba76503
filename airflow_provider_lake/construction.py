"""Construction of operators, when a DAG is parsed and when a mapped task starts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_lake.arguments import LakeArgumentError, named_arguments

__all__ = ["RefusingConstruction"]

_Made = TypeVar("_Made")


class RefusingConstruction(BaseOperatorMeta):
    """A metaclass that reports wrong arguments of an operator as a mistake of the DAG's author.

    Airflow constructs the operator of a mapped task when the task runs. So an unknown or missing
    argument is only found then, and every retry would find it again.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """All arguments of an operator, those of its own class first."""
        known: dict[str, inspect.Parameter] = {}
        for each in cls.__mro__:
            if "__init__" in vars(each):
                for name, parameter in named_arguments(vars(each)["__init__"]).items():
                    known.setdefault(name, parameter)
        return inspect.Signature([*known.values()])

    def __call__(cls: type[_Made], *args: Any, **given: Any) -> _Made:
        """Construct an operator; an error names the task, and the task is not retried."""
        kind: Any = cls
        try:
            made: _Made = super(RefusingConstruction, kind).__call__(*args, **given)
        except LakeArgumentError:
            raise
        except (TypeError, ValueError) as reason:
            why = _unknown_argument(kind, given, str(reason)) or reason
            raise LakeArgumentError(f"task {given.get('task_id')!r}: {why}") from reason
        return made


def _unknown_argument(
    operator: RefusingConstruction, given: Mapping[str, Any], reason: str
) -> str | None:
    """Return a sentence about the first argument that no constructor of an operator has."""
    from lakeformat.types.closest import closest

    known = operator.__signature__.parameters
    unknown = [name for name in given if name not in known and repr(name) in reason]
    if not unknown:
        return None
    return f"{operator.__name__} has no argument {unknown[0]!r}{closest(unknown[0], known)}"

"""Construction of operators, when a DAG is parsed and when a mapped task starts."""

from __future__ import annotations

from typing import Any

from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_lake.arguments import LakeArgumentError

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
            raise LakeArgumentError(f"task {given.get('task_id')!r}: {reason}") from reason

"""How operators are made, where a DAG is parsed and where a mapped task begins."""

from __future__ import annotations

from typing import Any

from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_lake.arguments import LakeArgumentError

__all__ = ["RefusingConstruction"]


class RefusingConstruction(BaseOperatorMeta):
    """What an operator cannot be made of is a mistake of the DAG's author.

    Airflow makes the operator of a mapped task when the task runs. An argument that it does not
    have, or one that is left out, is found then, and would be found by every retry again.
    """

    def __call__(cls, *args: Any, **given: Any) -> Any:
        """Make an operator; the error names the task, and is not retried."""
        try:
            return super().__call__(*args, **given)
        except LakeArgumentError:
            raise
        except (TypeError, ValueError) as reason:
            raise LakeArgumentError(f"task {given.get('task_id')!r}: {reason}") from reason

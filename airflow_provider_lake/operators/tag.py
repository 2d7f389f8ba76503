# SPDX-License-Identifier: Apache-2.0
"""Creates, replaces, renames or deletes a tag as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.tag import TagRequest
from spark_jobs.job_requests.values import Moment

__all__ = ["LakeTagOperator"]


class LakeTagOperator(LakeJobOperator):
    """Creates, replaces, renames or deletes a tag: a named snapshot, which is kept.

    Set ``exist_ok`` or ``missing_ok`` to make a retry harmless.

    :param action: the action; a key that does not belong to it is refused
    :param tag: the name of the tag
    :param snapshot: ``create``, ``replace``: the snapshot. Default: the newest
    :param from_tag: ``create``, ``replace``: use the snapshot of this other tag
    :param at_or_after: ``create``: use the first snapshot committed at or after this time
    :param watermark: ``create``: use the first snapshot that has reached this watermark
    :param retain: ``create``, ``replace``: lifetime of the tag, such as ``"7 d"``
    :param exist_ok: ``create``: do nothing if the tag exists
    :param new_name: ``rename``: the new name
    :param missing_ok: ``delete``: ignore a tag that does not exist
    :param force: ``delete``, ``replace``: also a tag at which a branch began, or that protects a
        rollback
    :param dry_run: ``delete``: only report what would be deleted
    """

    job = "tag"
    request = TagRequest
    waits_for = (
        "at_or_after",
        "watermark",
    )

    def __init__(
        self,
        *,
        action: Literal["create", "delete", "replace", "rename"],
        tag: str,
        snapshot: int | None = None,
        from_tag: str | None = None,
        at_or_after: Moment | None = None,
        watermark: int | None = None,
        retain: str | None = None,
        exist_ok: bool = False,
        new_name: str | None = None,
        missing_ok: bool = False,
        force: bool = False,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.action: Literal["create", "delete", "replace", "rename"] = action
        self.tag = tag
        self.snapshot = snapshot
        self.from_tag = from_tag
        self.at_or_after = at_or_after
        self.watermark = watermark
        self.retain = retain
        self.exist_ok = exist_ok
        self.new_name = new_name
        self.missing_ok = missing_ok
        self.force = force
        self.is_dry_run = dry_run
        self._check_arguments()

# SPDX-License-Identifier: Apache-2.0
"""Creates, replaces, renames or deletes a tag as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.tag import TagRequest
from spark_jobs.job_requests.values import Moment

__all__ = ["LakeTagOperator"]

_ORIGINS = ("snapshot", "from_tag", "at_or_after", "watermark")


class LakeTagOperator(LakeJobOperator):
    """Creates, replaces, renames or deletes a tag of a Paimon or Iceberg table.

    A tag is a name for a snapshot. The rows of the snapshot remain readable while it has the tag.

    With ``exist_ok`` or ``missing_ok`` a retry succeeds if an earlier attempt has done the work.

    :param action: the action; an argument that only other actions take is refused
    :param tag: the name of the tag
    :param snapshot: ``create``, ``replace``: the number of the snapshot; in an Iceberg table its
        id. Default: the newest
    :param from_tag: ``create``, ``replace``: use the snapshot of this other tag
    :param at_or_after: ``create``: use the first snapshot committed at or after this time
    :param watermark: ``create``: use the first snapshot whose watermark, in epoch milliseconds, has
        reached this value. Only for Paimon tables
    :param retain: ``create``, ``replace``: the lifetime of the tag, such as ``"7 d"``. In an
        Iceberg table it begins at the commit of the snapshot. Default: the option
        ``tag.default-time-retained`` of a Paimon table, and ``history.expire.max-ref-age-ms`` of an
        Iceberg table. If the option is not set, the tag is kept until you delete it
    :param exist_ok: ``create``: do nothing if the tag exists, even if it names another snapshot
    :param new_name: ``rename``: the new name
    :param missing_ok: ``delete``: ignore a tag that does not exist
    :param force: ``delete``, ``replace``: also accept a tag at which a branch began, and a tag
        ``rollback-to-as-latest-…``, which protects files that a rollback restored. If the table has
        more than 100 snapshots and changelogs in total, a tag ``rollback-to-as-latest-…`` that
        still protects files is refused even with ``force``. For an Iceberg table the argument has
        no effect
    :param dry_run: ``delete``: only report what would be deleted
    """

    job = "tag"
    request = TagRequest
    waits_for = (
        "at_or_after",
        "watermark",
    )
    _never_missing = (*LakeJobOperator._never_missing, *_ORIGINS)

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

    def _refuse_missing(self, name: str, before: object) -> None:
        """Raise ``LakeArgumentError`` for an argument that became None when it was rendered. An
        argument that selects the snapshot is refused only if no other argument selects one, because
        then the newest snapshot would get the tag.
        """
        has_origin = any(getattr(self, each) is not None for each in _ORIGINS)
        if name not in _ORIGINS or (self.action in ("create", "replace") and not has_origin):
            super()._refuse_missing(name, before)

"""Creates, replaces, renames or deletes a tag as an Airflow task."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.tag import TagRequest
from spark_jobs.job_requests.values import Moment

__all__ = ["LakeTagOperator"]


class LakeTagOperator(LakeJobOperator):
    """Keeps a snapshot under a name, or gives such a name up.

    ``exist_ok`` and ``missing_ok`` make a repetition harmless.

    :param action: what to do; a key below that does not belong to it is refused
    :param tag: the name of the tag
    :param snapshot: ``create``, ``replace``: the snapshot it names; the newest if nothing is
        said
    :param from_tag: ``create``, ``replace``: another tag of that snapshot
    :param at_or_after: ``create``: the first snapshot committed then or later
    :param watermark: ``create``: the first snapshot that has reached it
    :param retain: ``create``, ``replace``: after how long the tag expires, as ``"7 d"``
    :param exist_ok: ``create``: a tag of that name is taken as it is
    :param new_name: ``rename``: the name it gets
    :param missing_ok: ``delete``: a tag that is not there is no error
    :param force: ``delete``, ``replace``: also a tag that a branch began at
    :param dry_run: ``delete``: say what would go, and change nothing
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
        **kwargs: Any,
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

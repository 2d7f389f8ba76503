# SPDX-License-Identifier: Apache-2.0
"""``table.rollback``: restores the rows of an earlier snapshot."""

from __future__ import annotations

from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
)
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.rollback.as_latest import (
    Return,
    plan_return,
    publish_return,
    report_return,
    require_newest,
)
from lakeformat.paimon.rollback.cut import cut_history
from lakeformat.paimon.rollback.identity import EarlierReturns, StartedCut, find_cut
from lakeformat.paimon.rollback.plan import (
    RollbackPlan,
    objection_to,
    plan_rollback,
    quoted,
    require_unneeded,
)
from lakeformat.paimon.rollback.target import Target
from lakeformat.paimon.snapshot_positions import snapshot_number
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.position import Position
from lakeformat.tables.reference_reports import RollbackReport
from lakeformat.tables.rollback_request import RollbackRequest
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence

__all__ = ["rollback"]


def rollback(handle: TableHandle, request: RollbackRequest) -> RollbackReport:
    """Restore a snapshot: by a new snapshot or, without ``as_latest``, by deleting newer ones.

    If a rollback with the same commit identity has finished, return its report; a dry run does not
    look for such a rollback.

    Raise InvalidRequestError if the request does not name exactly one target, or has ``force`` with
    ``as_latest``. Without ``force``, raise it also if a tag or branch needs a snapshot that would
    be deleted; a dry run reports this error instead. Raise NotFoundError if the target does not
    exist.
    """
    as_latest, dry_run, snapshot = request.as_latest, request.dry_run, request.snapshot
    number = (
        snapshot_number(handle, "'snapshot' must be a snapshot number", snapshot)
        if isinstance(snapshot, Position)
        else snapshot
    )
    if request.commit is not None:
        require_commit_id(request.commit)
    if as_latest and request.force:
        raise InvalidRequestError(
            "force=True has an effect only if the rollback deletes snapshots: pass as_latest=False "
            "(--cut-history), too, or leave out force=True"
        )
    require_allowed(handle, Operation.COMMIT if as_latest else Operation.EXPIRE)
    require_same_table(handle)
    said = Target(snapshot, request.tag, request.as_of, request.watermark)
    who = None if dry_run else request.commit
    if as_latest:
        earlier = None if who is None else EarlierReturns.of(handle, who, number)
        return _as_latest(handle, said, who, earlier, dry_run)
    cut = None if who is None else find_cut(handle, who, number)
    if cut is not None and cut.done is not None:
        return cut.done
    return _cut(handle, said, cut, force=request.force, dry_run=dry_run)


def _cut(
    handle: TableHandle, said: Target, cut: StartedCut | None, *, force: bool, dry_run: bool
) -> RollbackReport:
    if cut is not None and cut.is_begun:
        said = Target(snapshot=cut.target)  # a time or a tag may mean another snapshot by now
    target = said.found(handle)
    plan = plan_rollback(handle, target, cut)
    if not force and not dry_run:
        require_unneeded(handle, plan)
    objection = objection_to(handle, plan) if dry_run and not force else None
    gone = tuple(plan.snapshots) if dry_run or plan.is_empty else cut_history(handle, plan, cut)
    report = RollbackReport(
        table=handle.uri,
        target=target.snapshot.id,
        snapshot_id=plan.newest or target.snapshot.id,
        as_latest=False,
        removed_snapshots=gone,
        removed_changelogs=tuple(plan.changelogs),
        removed_tags=tuple(plan.tags),
        moved_consumers=tuple(consumer.id for consumer in plan.consumers),
        objection=objection,
        dry_run=dry_run,
        reason=_reason(plan, len(gone), dry_run, objection),
    )
    if cut is not None:
        cut.finish(report)
    return report


def _as_latest(
    handle: TableHandle,
    said: Target,
    commit: CommitId | None,
    earlier: EarlierReturns | None,
    dry_run: bool,
) -> RollbackReport:
    head = _newest(handle)
    if earlier is not None and (done := earlier.find(head)):
        return done
    target = said.found(handle)
    if head is None:
        raise NotFoundError(
            f"this rollback adds a snapshot after the newest one, but {handle.uri} has no "
            "snapshot. To restore the snapshot of the tag itself, repeat the rollback with "
            "as_latest=False (--cut-history)"
        )
    try:
        plan = plan_return(handle, head, target)
    except CorruptTableError as damage:
        require_newest(handle, head, target)
        target.require_kept(handle, "the rollback")  # then its files may be missing
        raise CorruptTableError(
            f"{sentence(damage)} The rollback compares snapshot {target.snapshot.id} with the "
            f"newest, {head.id}. If only snapshots after {target.snapshot.id} are damaged, delete "
            "them: repeat the rollback with as_latest=False (--cut-history)"
        ) from damage
    if plan.is_empty and earlier is None:  # with an identity, a repetition must find a snapshot
        return report_return(handle, plan, head.id, None, dry_run=dry_run)
    if dry_run:
        return report_return(handle, plan, head.id + 1, None, dry_run=True)
    try:
        return _published(handle, plan, commit)
    except CommitConflictError:
        done = None if earlier is None else earlier.find(_newest(handle))
        if done is None:
            raise
        return done  # another attempt with this identity was faster


def _published(handle: TableHandle, plan: Return, commit: CommitId | None) -> RollbackReport:
    """Publish the rollback and return its report.

    If a file is missing because the newest snapshot has changed meanwhile, raise
    CommitConflictError instead of CorruptTableError.
    """
    try:
        return publish_return(handle, plan, commit)
    except CorruptTableError:
        require_newest(handle, plan.head, plan.target)
        raise


def _newest(handle: TableHandle) -> Snapshot | None:
    return latest_snapshot(handle.storage, handle.layout)


def _reason(plan: RollbackPlan, count: int, dry_run: bool, objection: str | None) -> str:
    number = plan.target.snapshot.id
    verb = "would be" if dry_run else "is"
    state = f"snapshot {number} {verb} the newest"
    if plan.newest is not None and plan.newest > number:
        state = (
            f"an earlier attempt rolled back to snapshot {number}; later commits, up to snapshot "
            f"{plan.newest}, are kept"
        )
    elif plan.is_empty:
        state = f"snapshot {number} is the newest already"
    if plan.is_empty:
        return state
    said = [state]
    deleted = "would be deleted" if dry_run else "deleted"
    said += [f"{deleted}: {counted(count, 'newer snapshot')}"] if count else []
    said += [f"{deleted}: {quoted(plan.tags, 'tag', 'tags')}"] if plan.tags else []
    if plan.consumers:
        names = quoted([each.id for each in plan.consumers], "consumer", "consumers")
        read = "reads" if len(plan.consumers) == 1 else "read"
        said.append(f"{names} {'would read' if dry_run else read} snapshot {number + 1} next")
    if plan.branches:
        names = quoted(plan.branches, "branch", "branches")
        have, are = ("has", "is") if len(plan.branches) == 1 else ("have", "are")
        said.append(f"{names} {have} newer snapshots and {are} kept")
    said.append(
        "remove_orphans (lake orphans TABLE --remove) removes the files that nothing refers to"
    )
    return "; ".join(said) + (f". Without force this is refused: {objection}" if objection else "")

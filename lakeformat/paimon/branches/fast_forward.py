# SPDX-License-Identifier: Apache-2.0
"""Fast-forwards main to a branch, if the branch has all commits of main.

The snapshots that main lacks are published on main one by one. A snapshot is published only if main
has no snapshot with its number. If a rollback meanwhile removes the previous snapshot, the
published snapshot is deleted again. So main is always at a complete snapshot. After an
interruption, repeat the call to continue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lakeformat.errors import (
    CommitConflictError,
    InvalidRequestError,
    LakeError,
)
from lakeformat.paimon.branches.create import refuse_inside_branch
from lakeformat.paimon.commit.publish import check_place
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.consumers.progress import FORWARDING
from lakeformat.paimon.deletion import refuse_if_expiring
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.paimon.metadata.consumer import Consumer, delete_consumer, write_consumer
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
    write_hints,
)
from lakeformat.paimon.metadata.tag import delete_tag, read_tag, tag_names
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.tags.source import Origin
from lakeformat.storage import Storage
from lakeformat.tables.create_once import PublishOutcome, create_or_find
from lakeformat.tables.reference_reports import FastForwardReport

__all__ = ["ForwardPlan", "fast_forward"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForwardPlan:
    """The ids of snapshots and schemas, and the names of tags, that only the branch has."""

    head: Snapshot | None
    """The newest snapshot of main; None if main has no snapshot."""
    snapshots: Sequence[int]
    schemas: Sequence[int]
    tags: Sequence[str]


def fast_forward(handle: TableHandle, name: str, *, dry_run: bool = False) -> FastForwardReport:
    """Publish a branch's snapshots, schemas and tags on main.

    Raise NotFoundError if the branch does not exist, and InvalidRequestError in the cases of
    ``plan_forward``. Raise CommitConflictError if meanwhile another program commits to main, rolls
    main back, or removes snapshots or tags of the branch.
    """
    refuse_inside_branch(handle, "forwarded")
    check_branch_name(name)
    source = handle.layout.on_branch(name)
    require_branch(handle.storage, source)
    require_allowed(handle, Operation.COMMIT)
    plan = plan_forward(handle, source)
    reason = _reason(name, plan, dry_run)
    if not dry_run:
        _run(handle, source, plan)
        _log.info("fast-forward of %s: %s", handle.uri, reason)
        handle.observe_upkeep()
    return FastForwardReport(
        table=handle.uri,
        branch=name,
        snapshots=tuple(plan.snapshots),
        schemas=tuple(plan.schemas),
        tags=tuple(plan.tags),
        dry_run=dry_run,
        reason=reason,
    )


def plan_forward(handle: TableHandle, source: TableLayout) -> ForwardPlan:
    """Return the snapshots, schemas and tags that main lacks; ``source`` is the branch's layout.

    Raise InvalidRequestError in any of these cases: the branch has no snapshot, main has commits
    that the branch lacks, a snapshot that main needs has expired on the branch, or main has another
    schema with the same id or another snapshot for the same tag.
    """
    storage, main = handle.storage, handle.layout
    theirs = snapshot_ids(storage, source)
    if not theirs:
        raise _refused(handle, source, "the branch has no snapshot: write to it first")
    head = latest_snapshot(storage, main)
    newer = _newer(handle, source, theirs, head)
    return ForwardPlan(head, newer, _schemas(handle, source), _tags(handle, source))


def _newer(
    handle: TableHandle, source: TableLayout, theirs: Sequence[int], head: Snapshot | None
) -> list[int]:
    """Return the ids of the branch's snapshots after ``head``, the newest snapshot of main.

    ``theirs`` are the ids of all snapshots of the branch. Raise InvalidRequestError if main has
    commits that the branch lacks, or if a snapshot that main needs has expired on the branch.
    """
    first = head.id + 1 if head else 1
    newer = [number for number in theirs if number >= first]
    if not newer and _has(handle, source, theirs[-1]):
        return []
    if head is not None and head.id in theirs:
        if read_snapshot(handle.storage, source, head.id) != head:
            raise _refused(handle, source, _diverged(handle, source, theirs, head))
    elif head is not None and not _began_at(handle, source, head):
        raise _refused(handle, source, _diverged(handle, source, theirs, head))
    if newer != [*range(first, first + len(newer))]:
        raise _refused(
            handle,
            source,
            f"main needs every snapshot of the branch from {first} on, but the branch no longer "
            f"has snapshot {sorted({*range(first, newer[-1])} - {*newer})[0]}. Write the branch's "
            "rows to main. Next time, fast-forward before snapshots of the branch expire",
        )
    return newer


def _has(handle: TableHandle, source: TableLayout, number: int) -> bool:
    """Return True if main and the branch have the same snapshot with the id ``number``."""
    theirs = read_snapshot_if_present(handle.storage, source, number)
    return theirs is not None and theirs == read_snapshot_if_present(
        handle.storage, handle.layout, number
    )


def _began_at(handle: TableHandle, source: TableLayout, head: Snapshot) -> bool:
    """Return True if a tag of the branch keeps main's newest snapshot.

    Then the branch began at this snapshot, even if it has expired on the branch.
    """
    tags = (read_tag(handle.storage, source, name) for name in tag_names(handle.storage, source))
    return any(tag.snapshot == head for tag in tags)


def _diverged(
    handle: TableHandle, source: TableLayout, theirs: Sequence[int], head: Snapshot
) -> str:
    storage, main = handle.storage, handle.layout
    shared = [
        number
        for number in snapshot_ids(storage, main)
        if number in theirs and _has(handle, source, number)
    ]
    if not shared:
        return (
            f"its history, from snapshot {theirs[0]} on, does not contain any snapshot of main "
            f"(up to {head.id}): the branch began empty, the shared snapshots have expired, or a "
            "rollback removed them from main. Write its rows to main, or to a new branch of the "
            "newest snapshot of main"
        )
    fork = max(shared)
    return (
        f"it shares the history of main up to snapshot {fork}, but main has later commits up to "
        f"snapshot {head.id}, which forwarding would lose. To delete these commits, first run "
        f"`lake rollback {handle.argument} --snapshot {fork} --cut-history` (in a script, add "
        "--yes); to keep them, write the branch's rows to main"
    )


def _schemas(handle: TableHandle, source: TableLayout) -> list[int]:
    storage, main = handle.storage, handle.layout
    ours, theirs = schema_ids(storage, main), schema_ids(storage, source)
    for number in sorted({*ours} & {*theirs}):
        if storage.read(main.schema(number)) != storage.read(source.schema(number)):
            raise _refused(
                handle,
                source,
                f"schema {number} was changed differently on main and on the branch: repeat the "
                "schema change on a new branch of the newest snapshot",
            )
    return [number for number in theirs if number > max(ours)]


def _tags(handle: TableHandle, source: TableLayout) -> list[str]:
    storage, main = handle.storage, handle.layout
    ours = {*tag_names(storage, main)}
    found = []
    for name in tag_names(storage, source):
        if name not in ours:
            found.append(name)
        elif read_tag(storage, main, name).snapshot != read_tag(storage, source, name).snapshot:
            raise _refused(
                handle,
                source,
                f"tag {name!r} names another snapshot on main: rename or delete one of the tags",
            )
    return found


def _run(handle: TableHandle, source: TableLayout, plan: ForwardPlan) -> None:
    """Copy the plan's files to main: first schemas, because snapshots refer to them; tags last."""
    storage, main = handle.storage, handle.layout
    for number in plan.schemas:
        _publish(storage, source.schema(number), main.schema(number))
    with _kept(replace(handle, layout=source), plan.snapshots):
        head = plan.head
        for number in plan.snapshots:
            head = _publish_snapshot(handle, source, number, head)
    if plan.snapshots:
        write_hints(storage, main, plan.snapshots[-1])
    for name in plan.tags:
        _publish_tag(handle, replace(handle, layout=source), name)


@contextmanager
def _kept(branch: TableHandle, snapshots: Sequence[int]) -> Iterator[None]:
    """Keep ``snapshots`` from expiring during the block, by a consumer of the branch.

    Raise CommitConflictError if an expiry of the branch is already deleting one of them. An expiry
    that begins later keeps them for the consumer.
    """
    storage, layout = branch.storage, branch.layout
    try:
        if snapshots:
            write_consumer(storage, layout, Consumer(FORWARDING, snapshots[0]))
            refuse_if_expiring(branch, snapshots[0], "main")
        yield
    finally:
        delete_consumer(storage, layout, FORWARDING)


def _publish_snapshot(
    main: TableHandle, source: TableLayout, number: int, head: Snapshot | None
) -> Snapshot:
    """Copy a snapshot of the branch to main, and return it; ``head`` is the snapshot before it.

    If a rollback has removed ``head`` from main meanwhile, delete the copy and raise
    CommitConflictError: otherwise the copy would undo the rollback.
    """
    snapshot = read_snapshot(main.storage, source, number)
    _publish(main.storage, source.snapshot(number), main.layout.snapshot(number))
    if check_place(main, snapshot, SnapshotDelta(), head) is not PublishOutcome.COMMITTED:
        raise CommitConflictError(
            f"{main.uri} was rolled back or changed during its fast-forward to branch "
            f"{source.branch!r}: snapshot {number} of the branch does not follow the newest "
            "snapshot of main any more. Main is intact, at a complete snapshot. If main should "
            "have the commits of the branch, run the fast-forward again. If this is not possible "
            "any more, the new call fails and names the reason"
        )
    return snapshot


def _publish_tag(main: TableHandle, branch: TableHandle, name: str) -> None:
    """Copy a tag of the branch to main.

    If the tag is deleted on the branch meanwhile, delete the copy and raise CommitConflictError.
    """
    tag = read_tag(branch.storage, branch.layout, name)
    _publish(main.storage, branch.layout.tag(name), main.layout.tag(name))
    try:
        Origin(tag.snapshot, name).require_kept(branch, f"tag {name!r} of main")
    except LakeError:
        delete_tag(main.storage, main.layout, name)
        raise


def _publish(storage: Storage, old: str, new: str) -> None:
    """Copy a file from path ``old`` to path ``new``, if ``new`` does not exist.

    An existing file with the same content is kept; raise CommitConflictError for other content.
    """
    content = storage.read(old)
    if not create_or_find(storage, new, content) and storage.read(new) != content:
        raise CommitConflictError(
            f"another program wrote {storage.uri(new)} during the fast-forward of main. Main is "
            "intact, at a complete snapshot. Run the fast-forward again. If this is not possible "
            "any more, the new call fails and names the reason"
        )


def _refused(handle: TableHandle, source: TableLayout, rule: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"branch {source.branch!r} of {handle.uri} cannot be fast-forwarded: {rule}"
    )


def _reason(name: str, plan: ForwardPlan, dry_run: bool) -> str:
    if not (plan.snapshots or plan.schemas or plan.tags):
        return f"main has everything of branch {name!r} already"
    verb = "would receive" if dry_run else "received"
    parts = [
        f"{len(found)} {what}{'' if len(found) == 1 else 's'}"
        for found, what in (
            (plan.snapshots, "snapshot"),
            (plan.schemas, "schema"),
            (plan.tags, "tag"),
        )
        if found
    ]
    return f"main {verb} {', '.join(parts)} of branch {name!r}"

# SPDX-License-Identifier: Apache-2.0
"""Deletes tags, and the files that only these tags needed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.deletion import Deleter, OnRemoval, find_protection
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import Tag, delete_tag, read_tag, read_tag_if_present, tag_names
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.tags.exclusive_files import Lost, remove_exclusive_files
from lakeformat.paimon.tags.in_use import require_found_again, require_unneeded
from lakeformat.paimon.tags.success_file import remove_success_file
from lakeformat.tables.file_name_part import suffixed
from lakeformat.tables.json_file import decode_json_file
from lakeformat.tables.reference_reports import DeletionReport
from lakeformat.types.count_text import counted

__all__ = ["delete"]

_DELETED = ".deleted-"
_AT_ONCE = 50
"""The number of tags that are deleted together. Memory holds the names of all their files.

The remaining snapshots, tags and branches are read once for these tags.
"""
_NAMED = 3
_log = logging.getLogger(__name__)


def delete(
    handle: TableHandle,
    names: Sequence[str],
    *,
    force: bool = False,
    missing_ok: bool = False,
    dry_run: bool = False,
    on_progress: OnRemoval | None = None,
    why: str = "",
    none: str = "no tag deleted",
) -> DeletionReport:
    """Delete tags, and the files that no snapshot, branch or other tag refers to.

    First, an interrupted deletion is finished. Raise InvalidRequestError without ``force`` for a
    tag in use. Even with ``force``, raise it for a tag without which an expiry could delete files
    that a rollback restored. Raise NotFoundError without ``missing_ok`` for a missing tag, and
    always if the table was dropped or created again.

    The reason in the report begins with the deleted tags, followed by the text ``why``. If there is
    no tag to delete, the reason begins with the text ``none``, and ``why`` is not used.
    """
    require_allowed(handle, Operation.TAG)
    require_same_table(handle)
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequestError(
                f"cannot delete a tag of {handle.uri}: tag names must be str, got {name!r}. "
                "Pass each name as a separate argument: delete('a', 'b')"
            )
    deletion = _Deletion(
        handle,
        Deleter(
            handle.options.file_operation_threads,
            dry_run=dry_run,
            on_progress=on_progress,
            later="The next deletion of a tag tries again",
        ),
        dry_run,
    )
    if not dry_run:
        handle.require_published()
    pending = _pending(handle)
    deletion.finish([*pending.values()])
    may_be_missing = {*pending, *(_missing(handle, names) if missing_ok else ())}
    tags = {
        name: _chosen(handle, name, may_be_missing, force=force) for name in dict.fromkeys(names)
    }
    deletion.delete([tag for tag in tags.values() if tag is not None])
    done = [name for name, tag in tags.items() if tag is not None or name in pending]
    return deletion.report(done, why, none)


def _missing(handle: TableHandle, names: Sequence[str]) -> set[str]:
    return {*names}.difference(tag_names(handle.storage, handle.layout))


def _chosen(
    handle: TableHandle, name: str, may_be_missing: Collection[str], *, force: bool
) -> Tag | None:
    """Return the tag to delete; None if the tag is missing, and its name is in ``may_be_missing``.

    Raise NotFoundError for any other missing tag. Raise InvalidRequestError without ``force`` for a
    tag in use, and always for a tag that the expiry needs to protect a rollback.
    """
    tag = read_tag_if_present(handle.storage, handle.layout, name)
    if tag is None and name not in may_be_missing:
        # this call raises an error that lists the tags
        return read_tag(handle.storage, handle.layout, name)
    if tag is not None and not force:
        require_unneeded(handle, tag, "deleting")
    if tag is not None:
        require_found_again(handle, tag)
    return tag


@dataclass(slots=True)
class _Deletion:
    """Deletes tags in groups; files that a later group needs are deleted with that group."""

    handle: TableHandle
    deleter: Deleter
    dry_run: bool
    gone: list[str] = field(default_factory=list)

    def delete(self, tags: Sequence[Tag]) -> None:
        """Delete tags and, if their snapshots were deleted, the files that only these tags need."""
        for some in _parts(tags):
            self.gone += [tag.name for tag in some]
            is_live = in_parallel(self.handle, self._delete_tag, some)
            lost = [tag for tag, found in zip(some, is_live, strict=True) if not found]
            if not self.dry_run:
                if len(lost) < len(some):
                    self.handle.observe_upkeep()
                if lost:
                    self.handle.require_published()
            self._remove_files(lost)

    def _delete_tag(self, tag: Tag) -> bool:
        """Delete a tag; return True if its snapshot still exists, and so needs its files.

        If the snapshot does not exist, first write a file, so that a later call can finish an
        interrupted deletion.
        """
        storage, layout = self.handle.storage, self.handle.layout
        is_live = self._is_live(tag)
        if self.dry_run:
            return is_live
        if not is_live:
            storage.delete(layout.deleted_tag(tag.name))  # left by an earlier tag of this name
            storage.create(layout.deleted_tag(tag.name), tag.to_json())
        delete_tag(storage, layout, tag.name)
        remove_success_file(self.handle, tag.name)
        return is_live

    def finish(self, tags: Sequence[Tag]) -> None:
        """Delete the files that interrupted deletions of tags have left.

        If a tag still exists, the tag and its files are kept.
        """
        for some in _parts(tags):
            self._remove_files([tag for tag in some if not self._is_kept(tag)])

    def _is_kept(self, tag: Tag) -> bool:
        storage, layout = self.handle.storage, self.handle.layout
        if read_tag_if_present(storage, layout, tag.name) != tag:
            return False
        if not self.dry_run:  # the tag was not deleted yet: keep it
            storage.delete(layout.deleted_tag(tag.name))
        return True

    def _remove_files(self, tags: Sequence[Tag]) -> None:
        handle = self.handle
        if not tags:
            return
        for tag in () if self.dry_run else tags:
            _log.info(
                "deleted tag %r of %s; files that only this tag needed are deleted next",
                *(tag.name, handle.uri),
            )
        if look_again(handle, lambda: self._remove_exclusive(tags)) and not self.dry_run:
            marks = [handle.layout.deleted_tag(tag.name) for tag in tags]
            in_parallel(handle, handle.storage.delete, marks)

    def _remove_exclusive(self, tags: Sequence[Tag]) -> bool:
        protection = find_protection(
            self.handle,
            oldest=self._oldest(),
            with_oldest_state=True,
            without_tags=self.gone if self.dry_run else (),
            changelogs=self._changelogs(),
        )
        return remove_exclusive_files(
            self.handle,
            Lost([tag.snapshot for tag in tags]),
            protection,
            self.deleter,
            _reason(tags),
            dry_run=self.dry_run,
        )

    def _is_live(self, tag: Tag) -> bool:
        """Return True if the tagged snapshot exists.

        Return False if it has expired, or if another snapshot has its number after a rollback.
        """
        number = tag.snapshot.id
        found = read_snapshot_if_present(self.handle.storage, self.handle.layout, number)
        return found == tag.snapshot

    def _oldest(self) -> Snapshot | None:
        storage, layout = self.handle.storage, self.handle.layout
        for number in snapshot_ids(storage, layout):
            found = read_snapshot_if_present(storage, layout, number)
            if found is not None:
                return found
        return None

    def _changelogs(self) -> list[Snapshot]:
        storage, layout = self.handle.storage, self.handle.layout
        return [
            read_changelog(storage, layout, number) for number in changelog_ids(storage, layout)
        ]

    def report(self, names: Sequence[str], why: str, none: str) -> DeletionReport:
        deleted, count = self.deleter.deleted, len(names)
        verb = "would be deleted" if self.dry_run else "deleted"
        if names:
            tags = f"{count} tags" if count > 1 else f"tag {names[0]!r}"
            whose = "they" if count > 1 else "it"
            files = f"{counted(deleted.total, 'file')} that only {whose} needed"
            parts = [f"{tags} {verb}{why}, and {files if deleted.total else 'no other file'}"]
        else:
            parts = [none]
            if deleted.total:
                files = counted(deleted.total, "file")
                done = "would delete" if self.dry_run else "deleted"
                parts.append(f"{done} {files} of an interrupted deletion")
        if deleted.failures:
            failed = counted(deleted.failures, "file")
            parts.append(f"could not remove {failed}: the next deletion of a tag tries again")
        return DeletionReport(
            table=self.handle.uri,
            deleted=tuple(names),
            files={str(kind): number for kind, number in sorted(deleted.files.items())},
            bytes=deleted.bytes,
            failures=deleted.failures,
            failed=tuple(deleted.failed),
            dry_run=self.dry_run,
            reason="; ".join(parts),
        )


def _parts(tags: Sequence[Tag]) -> Iterator[Sequence[Tag]]:
    for start in range(0, len(tags), _AT_ONCE):
        yield tags[start : start + _AT_ONCE]


def _reason(tags: Sequence[Tag]) -> str:
    """Return the reason for the deletion of the files of tags, with the names of a few tags."""
    shown = [f"tag {tag.name!r} (snapshot {tag.snapshot.id})" for tag in tags[:_NAMED]]
    if len(tags) > _NAMED:
        shown.append(counted(len(tags) - _NAMED, "more tag"))
    return f"only {' and '.join(shown)} referred to it"


def _pending(handle: TableHandle) -> dict[str, Tag]:
    """Return, by name, the tags whose deletion was interrupted before all files were deleted."""
    found: dict[str, Tag] = {}
    for info in handle.storage.list(handle.layout.tag_directory):
        name = suffixed(info.name, _DELETED)
        if name is None or info.is_directory:
            continue
        try:
            content = handle.storage.read(info.path)
        except NotFoundError:
            continue
        found[name] = decode_json_file(
            content,
            handle.storage.uri(info.path),
            partial(Tag.from_json, name),
        )
    return found

# SPDX-License-Identifier: Apache-2.0
"""Finds the files to which snapshots, tags, branches and long-lived changelogs refer.

To limit memory, a few manifests are read at a time, and only hashes of names are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.deletion.changelog_ownership import NO_PRODUCER, ChangelogOwnership
from lakeformat.paimon.deletion.retried_reads import changed_too_often
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches, unfinished_branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, read_manifest_list
from lakeformat.paimon.metadata.recent_manifests import RecentManifests
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.staged_results import staged_results
from lakeformat.paimon.metadata.tag import read_tag_if_present
from lakeformat.paimon.orphans.manifest_names import HashedNames, ReadNames, encoded, last_part
from lakeformat.paimon.orphans.name_set import LiveNames, NameSet, numbers_of
from lakeformat.paimon.orphans.readers import Readers, readers_of
from lakeformat.tables.file_name_part import suffixed

__all__ = ["LookedThrough", "References", "find_references"]

_LOOKS = 20
_MANIFESTS_AT_A_TIME = 4
_SNAPSHOTS_AT_A_TIME = 16
_MOST_ENTRIES = 1 << 22
"""The approximate limit of manifest entries in memory. Each takes 9 bytes: a hash of the file name
and a flag.
"""


@dataclass(frozen=True, slots=True)
class _BranchReferences:
    """The metadata files of one branch that refer to other files.

    Snapshots and changelogs are given by number, tags by name and time of the last change, and
    staged results by name. A staged result stores messages until another job commits them.
    """

    snapshots: frozenset[int] = frozenset()
    changelogs: frozenset[int] = frozenset()
    tags: frozenset[tuple[str, int]] = frozenset()
    staged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LookedThrough:
    """The number of branches, snapshots, tags and changelogs that were read."""

    branches: int = 0
    snapshots: int = 0
    tags: int = 0
    changelogs: int = 0

    @property
    def is_nothing(self) -> bool:
        """True if no metadata was read, so nothing could refer to a file."""
        return not (self.snapshots or self.tags or self.changelogs)

    def __str__(self) -> str:
        parts = [
            _many(self.snapshots, "snapshot"),
            _many(self.tags, "tag"),
            _many(self.changelogs, "changelog"),
        ]
        return f"{', '.join(parts)} of {_many(self.branches, 'branch', 'branches')}"


def find_references(handle: TableHandle, readers: Readers | None = None) -> References:
    """Return the names of all files that any metadata of the table refers to.

    Raise a LakeError if a metadata file cannot be read: the files that it names would look like
    orphans.
    """
    found = References(handle, readers or readers_of(handle))
    found.catch_up()
    return found


@dataclass(frozen=True, slots=True)
class _Lists:
    base: list[ManifestMeta]
    delta: list[ManifestMeta]
    changelog: list[ManifestMeta]

    def manifests(self) -> Iterator[ManifestMeta]:
        yield from self.base
        yield from self.delta
        yield from self.changelog


@dataclass(slots=True)
class References:
    """The names of all referenced files, including the metadata files that refer to them."""

    handle: TableHandle
    readers: Readers
    names: NameSet = field(default_factory=NameSet)
    looked_through: LookedThrough = field(default_factory=LookedThrough)
    newest: dict[str, Snapshot] = field(default_factory=dict)
    """The newest snapshot of each branch, by name of the branch."""
    times: dict[int, int] = field(default_factory=dict)
    """The commit time of each snapshot of the branch main in epoch milliseconds, by number."""
    _seen: dict[str, _BranchReferences] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    """The names of manifests and index manifests that need not be read again."""
    recent: RecentManifests[HashedNames] = field(
        default_factory=lambda: RecentManifests(_MOST_ENTRIES)
    )
    files_of: Counter[bytes] = field(default_factory=Counter)
    """The number of manifest entries per partition (a framed binary row), counted only with an
    executor.
    """

    def catch_up(self) -> None:
        """Read all metadata that is not read yet, until no new metadata appears.

        The references of a metadata file that was deleted after it was read are kept. Raise
        CorruptTableError or NotFoundError for metadata that is missing although the table has not
        changed, and SnapshotExpiredError if the table changes again and again.
        """
        failures = 0
        while (state := _state(self.handle)) != self._seen:
            try:
                for name, of_branch in state.items():
                    self._read_branch(name, of_branch)
            except (CorruptTableError, NotFoundError) as missing:
                # Meanwhile an expiry may delete files; that is not damage.
                failures += 1
                if _state(self.handle) == state:
                    raise
                if failures == _LOOKS:
                    raise changed_too_often(self.handle, _LOOKS, missing) from missing
                continue
            self._seen = state
            self.looked_through = LookedThrough(
                branches=len(state),
                snapshots=sum(len(each.snapshots) for each in state.values()),
                tags=sum(len(each.tags) for each in state.values()),
                changelogs=sum(len(each.changelogs) for each in state.values()),
            )

    def _read_branch(self, name: str, state: _BranchReferences) -> None:
        branch = _Branch(self, name, is_first=name not in self._seen)
        try:
            branch.read(state, self._seen.get(name, _BranchReferences()))
        except CorruptTableError:
            # An interrupted deletion of a branch left some files. Their references are kept.
            if name not in unfinished_branches(self.handle.storage, self.handle.layout):
                raise

    def keep(self, names: Iterable[str]) -> None:
        """Add file names to the referenced names, even if no metadata refers to them."""
        self.names.add(numbers_of(encoded(name) for name in names))

    def keep_written(self, message: CommitMessage) -> None:
        """Add the names of the files of an uncommitted message to the referenced names."""
        for file in message.written_files():
            self.keep([file.file_name, *file.extra_files])
        self.keep(entry.file_name for entry in message.written_index_files())


class _Branch:
    def __init__(self, found: References, name: str, *, is_first: bool) -> None:
        self._found = found
        self._name = name
        self._handle = found.handle
        self._storage = found.handle.storage
        self._layout = found.handle.layout.on_branch(name)
        self._is_first = is_first
        self._first = 0
        self._ownership = ChangelogOwnership(self._storage, self._layout)

    def read(self, state: _BranchReferences, known: _BranchReferences) -> None:
        """Read those snapshots, changelogs, tags and staged results of ``state`` that ``known``
        lacks.
        """
        self._first = min(state.snapshots, default=0)
        self._add_snapshots(sorted(state.snapshots - known.snapshots))
        for number in sorted(state.changelogs - known.changelogs):
            self._add_changelog(number)
        for name, _ in sorted(state.tags - known.tags):
            self._add_tag(name)
        for name in sorted(state.staged - known.staged):
            self._add_staged(name)

    def _snapshots(self, numbers: Sequence[int]) -> Iterator[tuple[Snapshot, _Lists]]:
        def read(number: int) -> tuple[Snapshot, _Lists] | None:
            snapshot = read_snapshot_if_present(self._storage, self._layout, number)
            if snapshot is None:
                return None
            if number == self._first:
                snapshot = without_expired_changes(self._storage, self._layout, snapshot)
            return snapshot, self._lists(snapshot)

        here = Readers(self._found.readers.threads)
        found = here.each(read, numbers, _SNAPSHOTS_AT_A_TIME)
        yield from (each for each in found if each is not None)

    def _add_snapshots(self, numbers: Sequence[int]) -> None:
        found, before = self._found, None
        added: list[ManifestMeta] = []
        for snapshot, lists in self._snapshots(numbers):
            self._add_metadata(snapshot, lists)
            added += lists.changelog
            if not self._is_first:
                self._add_unread(lists)
            elif before is None or snapshot.id != before + 1:
                self._add_live(snapshot, lists)
            else:
                added += lists.delta
            found.newest[self._name] = snapshot
            if self._name == MAIN_BRANCH:
                found.times[snapshot.id] = snapshot.time_millis
            before = snapshot.id
        self._add_added(added)
        newest = found.newest.get(self._name)
        if self._is_first and newest is not None and len(numbers) > 1:
            # Normally earlier snapshots name all these files, but the history may have gaps.
            self._add_live(newest, self._lists(newest))

    def _add_changelog(self, number: int) -> None:
        changelog = read_changelog_if_present(self._storage, self._layout, number)
        if changelog is None or not self._ownership.needs_files(changelog):
            return
        source = f"changelog {number} of {self._handle.uri}"
        # The state of the snapshot has expired, but its changes are kept. They are its changelog
        # files or, without a producer, the files that its commit added and deleted. The current
        # options do not determine which of the two applied then.
        has_no_list = changelog.changelog_manifest_list is None
        must_be_there = has_no_list and not self._has_producer
        lists = _Lists(
            base=self._list(changelog, ListKind.BASE, source, may_be_gone=True),
            delta=self._list(changelog, ListKind.DELTA, source, may_be_gone=not must_be_there),
            changelog=self._list(changelog, ListKind.CHANGELOG, source),
        )
        self._add_metadata(changelog, lists, with_index=False)
        self._add_added(lists.changelog)
        added = lists.delta if has_no_list else []
        if not must_be_there:
            added = [each for each in added if self._is_there(each.file_name)]
        for named in self._names(added):
            self._found.names.add(named.numbers)

    def _is_there(self, name: str) -> bool:
        return self._storage.exists(self._layout.manifest(name))

    @property
    def _has_producer(self) -> bool:
        return self._handle.options.changelog_producer != NO_PRODUCER

    def _add_tag(self, name: str) -> None:
        tag = read_tag_if_present(self._storage, self._layout, name)
        if tag is None:
            return
        # The changelog of a tagged snapshot expires together with the snapshot.
        snapshot = replace(tag.snapshot, changelog_manifest_list=None)
        lists = self._lists(snapshot)
        self._add_metadata(snapshot, lists)
        self._add_live(snapshot, lists)

    def _add_staged(self, name: str) -> None:
        """Add the file names of a staged result, because a later commit may use the files."""
        staged = staged_results(self._storage, self._layout).read_if_present(name)
        for message in () if staged is None else staged.messages:
            self._found.keep_written(message)

    def _lists(self, snapshot: Snapshot) -> _Lists:
        source = f"snapshot {snapshot.id} of {self._handle.uri}"
        return _Lists(
            base=self._list(snapshot, ListKind.BASE, source),
            delta=self._list(snapshot, ListKind.DELTA, source),
            changelog=self._list(snapshot, ListKind.CHANGELOG, source),
        )

    def _list(
        self, snapshot: Snapshot, kind: ListKind, source: str, *, may_be_gone: bool = False
    ) -> list[ManifestMeta]:
        name, size = (getattr(snapshot, member) for member in kind.value)
        if name is None:
            return []
        try:
            with referred_to_by(source):
                return read_manifest_list(self._storage, self._layout, name, size=size)
        except CorruptTableError:
            if may_be_gone and not self._storage.exists(self._layout.manifest(name)):
                return []
            raise

    def _add_metadata(self, snapshot: Snapshot, lists: _Lists, *, with_index: bool = True) -> None:
        named = [
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
        ]
        if with_index:
            named.append(snapshot.statistics)
        self._found.keep(name for name in named if name is not None)
        self._found.keep(each.file_name for each in lists.manifests())
        if with_index and snapshot.index_manifest is not None:
            with referred_to_by(f"snapshot {snapshot.id} of {self._handle.uri}"):
                self._add_index(snapshot.index_manifest)

    def _add_index(self, name: str) -> None:
        found = self._found
        if name in found.read:
            return
        entries = read_index_manifest(self._storage, self._layout, name)
        found.keep([name, *(entry.file_name for entry in entries)])
        found.keep(last_part(entry.external_path) for entry in entries if entry.external_path)
        found.read.add(name)

    def _add_live(self, snapshot: Snapshot, lists: _Lists) -> None:
        live = LiveNames()
        with referred_to_by(f"snapshot {snapshot.id} of {self._handle.uri}"):
            for named in self._names([*lists.base, *lists.delta]):
                live.add(named.numbers, named.is_delete)
        self._found.names.add(live.left())

    def _add_added(self, manifests: Sequence[ManifestMeta]) -> None:
        for named in self._names(manifests):
            self._found.names.add(named.numbers[~named.is_delete])

    def _add_unread(self, lists: _Lists) -> None:
        """Add every file that a manifest in ``lists`` adds, unless the manifest was read before.

        Files that a later entry deletes are added, too. So a removal of orphans may keep too many
        files, never too few.
        """
        self._add_added(
            [each for each in (*lists.base, *lists.delta) if each.file_name not in self._found.read]
        )

    def _names(self, manifests: Sequence[ManifestMeta]) -> Iterator[HashedNames]:
        return self._found.recent.each(manifests, self._read_names)

    def _read_names(self, manifests: Sequence[ManifestMeta]) -> Iterator[HashedNames]:
        found = self._found
        is_counted = found.readers.are_elsewhere(len(manifests))
        read = ReadNames(self._storage, self._layout, is_counted=is_counted)
        each = found.readers.each(
            read, manifests, _MANIFESTS_AT_A_TIME, lambda manifest: manifest.file_size
        )
        for manifest, named in zip(manifests, each, strict=True):
            found.read.add(manifest.file_name)
            found.files_of.update(named.files_of)
            yield named.hashed()


def _state(handle: TableHandle) -> dict[str, _BranchReferences]:
    storage, layout = handle.storage, handle.layout
    names = [
        MAIN_BRANCH,
        *(branch.name for branch in branches(storage, layout)),
        *unfinished_branches(storage, layout),
    ]
    return {name: _state_of(handle, layout.on_branch(name)) for name in names}


def _state_of(handle: TableHandle, layout: TableLayout) -> _BranchReferences:
    storage = handle.storage
    # Read the staged results before the snapshots. A result that is published in between is then in
    # at least one of the two.
    staged = frozenset(staged_results(storage, layout).names())
    tags = [
        (suffixed(info.name, "tag-"), info.modified_millis)
        for info in storage.list(layout.tag_directory)
        if not info.is_directory
    ]
    return _BranchReferences(
        frozenset(snapshot_ids(storage, layout)),
        frozenset(changelog_ids(storage, layout)),
        frozenset((name, changed) for name, changed in tags if name is not None),
        staged,
    )


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one}" if count == 1 else f"{count} {more or one + 's'}"

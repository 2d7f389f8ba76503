# SPDX-License-Identifier: Apache-2.0
"""The history of a Mixed table: the snapshots of both stores in the order of their commits.

A position has the sequence number of the change store, then that of the base store. Both only grow,
so positions have an order. Snapshots of different stores are ordered by their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot, history_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.mixed.stores.optimized_sequences import is_optimizing
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import MAIN_BRANCH, AnyPosition, Position
from lakeformat.tables.since import Since

__all__ = ["MixedHistory", "MixedSnapshot", "mixed_history"]

_STORES = ("change", "base")
"""The stores in the order of their numbers in a position."""
_NUMBERS = len(_STORES)


@dataclass(frozen=True, slots=True)
class MixedSnapshot:
    """A snapshot of one store, and the position of the table right after it."""

    store: str
    """``base`` or ``change``."""
    of_store: BranchSnapshot
    change: Snapshot | None
    """The newest snapshot of the change store at the position."""
    base: Snapshot | None
    """The newest snapshot of the base store at the position."""
    position: Position
    is_readable: bool = True
    """False if the snapshot of the other store at the position has expired."""

    @property
    def number(self) -> int:
        """The sequence number of the snapshot in its store."""
        return self.of_store.snapshot.sequence_number

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot in its store."""
        return self.of_store.snapshot_id

    @property
    def id(self) -> int:
        """The id of the snapshot in its store."""
        return self.of_store.snapshot_id

    @property
    def identity(self) -> str:
        """The ids of the newest snapshots of both stores; no other state of the table has them."""
        assert self.position.identity is not None
        return self.position.identity

    def has_identity(self, identity: str) -> bool:
        """Return True if ``identity`` names the snapshots of this state.

        Ids of expired snapshots are not compared.
        """
        ids, numbers = identity.split("-"), self.position.numbers
        if len(ids) != _NUMBERS:
            return False
        found = (self.change, self.base)
        return all(
            given == str(each.snapshot_id) if each else not (given and number == 0)
            for given, each, number in zip(ids, found, numbers, strict=True)
        )

    @property
    def commit_kind(self) -> str:
        """The kind of the commit: ``COMPACT``, ``APPEND`` or ``OVERWRITE``.

        ``COMPACT`` is an optimizing or a removal of merged changes, which change no row.
        """
        is_expiry = self.store == "change" and self.operation == "delete"
        changes_no_row = is_expiry or is_optimizing(self.of_store.summary)
        return "COMPACT" if changes_no_row else self.of_store.commit_kind

    @property
    def operation(self) -> str | None:
        """The operation in Iceberg's words; None if the snapshot does not store it."""
        return self.of_store.operation

    @property
    def time_millis(self) -> int:
        """The time of the commit, in epoch milliseconds."""
        return self.of_store.time_millis

    @property
    def schema_id(self) -> int | None:
        """The id of the schema that the commit used; None if the snapshot does not store it."""
        return self.of_store.schema_id

    @property
    def delta_record_count(self) -> int:
        """The number of rows that the commit added to its store, minus the rows that it removed
        there.

        A delete in the change store adds a row to that store.
        """
        return self.of_store.delta_record_count

    @property
    def changelog_record_count(self) -> None:
        """Always None: the change store is the changelog."""

    @property
    def watermark(self) -> None:
        """Always None: snapshots of Mixed tables have no watermarks."""

    @property
    def commit_user(self) -> str | None:
        """The user in the identity of the commit; None if another program made the commit."""
        return self.of_store.commit_user


@dataclass(frozen=True, slots=True)
class MixedHistory:
    """The snapshots of both stores that have not expired, oldest first."""

    snapshots: Sequence[MixedSnapshot]
    beginning: Position
    oldest: Position
    """The position before the first of ``snapshots``; later than the beginning if some have
    expired."""
    uri: str

    @property
    def head(self) -> Position:
        """The newest position."""
        return self.snapshots[-1].position if self.snapshots else self.beginning

    def parse(self, position: AnyPosition) -> Position:
        """Convert a position or a snapshot id to a position of this table.

        A number is the id of a snapshot of either store; 0 is the beginning. Raise
        ``InvalidRequestError`` for a position of another table or branch, and ``NotFoundError`` for
        an unknown id.
        """
        if type(position) is int and position != 0:
            return self._of_snapshot(position).position
        given = Position.parse(position)
        if given.numbers == (0,):
            return self.beginning
        if len(given.numbers) != _NUMBERS:
            raise InvalidRequestError(
                f"{given} is not a position of the Mixed table {self.uri}, whose positions have "
                f"the sequence numbers of both stores, such as {self.head}"
            )
        _ = given >= self.beginning  # raises for another branch or table
        return Position(given.numbers, MAIN_BRANCH, given.identity, self.uri)

    def between(self, after: AnyPosition, upto: AnyPosition | None) -> list[MixedSnapshot]:
        """Return the snapshots after ``after`` and up to ``upto``, oldest first.

        ``upto=None`` means the newest position. The snapshots of each store are chosen by their
        sequence numbers. Times are not used, because the clocks of writers may differ.
        """
        first = self.parse(after)
        last = self.head if upto is None else self.parse(upto)
        numbers = zip(first.numbers, last.numbers, strict=True)
        ranges = dict(zip(_STORES, numbers, strict=True))
        found = []
        for each in self.snapshots:
            after_number, last_number = ranges[each.store]
            is_newer = after_number < each.number <= last_number
            if not each.number:  # a store of format version 1 does not number its snapshots
                is_newer = first < each.position <= last
            if is_newer:
                found.append(self._seen_between(each, first.numbers, last.numbers))
        return found

    def since(self, after: AnyPosition, upto: AnyPosition | None) -> Since[MixedSnapshot]:
        """Return the snapshots after a position and up to ``upto``.

        The result also shows if snapshots after the position have expired, or if a rollback
        removed a snapshot of the position.
        """
        given = self.parse(after)
        pairs = [*zip(given.numbers, self.oldest.numbers, strict=True)]
        missed = any(mine < oldest for mine, oldest in pairs)
        return Since(tuple(self.between(given, upto)), missed, self._rewound(given))

    def at(self, position: AnyPosition) -> MixedSnapshot:
        """Return the newest snapshot at a position; raise ``NotFoundError`` if it has expired or
        never existed.
        """
        given = self.parse(position)
        if given == self.beginning and not any(self.oldest.numbers):
            raise NotFoundError(
                f"{self.uri} had no snapshot at position {given}, before its first commit: there "
                "are no rows to read"
            )
        found = self._state(given.numbers)
        is_listed = any(each is found for each in self.snapshots)
        if found is None or self._rewound(given) or not (is_listed or given.identity):
            raise NotFoundError(
                f"{self.uri} has no snapshots at position {given}: the snapshot of one store may "
                f"have expired. snapshots() lists the positions that are left, up to {self.head}"
            )
        return self._require_readable(found)

    def state(self, position: AnyPosition) -> MixedSnapshot | None:
        """Return the newest snapshot at a position; None if it has expired or does not
        exist yet.
        """
        try:
            given = self.parse(position)
        except NotFoundError:
            return None
        return self._state(given.numbers)

    def at_time(self, as_of: Moment) -> MixedSnapshot:
        """Return the newest snapshot that the table had at a time.

        Raise ``NotFoundError`` if the table had no snapshot at this time, or if the newest snapshot
        of one store at this time has expired.
        """
        millis = to_millis(as_of)
        found = [each for each in self.snapshots if each.time_millis <= millis]
        if found:
            return self._require_readable(found[-1])
        since = "it has no snapshot yet"
        if self.snapshots:
            begin = moment_text(self.snapshots[0].time_millis)
            since = f"its history begins at {begin}; choose a later time"
        raise NotFoundError(f"{self.uri} had no snapshot at {moment_text(millis)}: {since}")

    def _require_readable(self, found: MixedSnapshot) -> MixedSnapshot:
        if found.is_readable:
            return found
        other = "base" if found.base is None else "change"
        left = [each for each in self.snapshots if each.is_readable]
        assert left, "the newest snapshots of both stores never expire"
        raise NotFoundError(
            f"{self.uri} cannot be read at position {found.position}: the snapshot of its {other} "
            f"store at this position has expired. The oldest position with both snapshots is "
            f"{left[0].position}, of {moment_text(left[0].time_millis)}"
        )

    def _of_snapshot(self, snapshot_id: int) -> MixedSnapshot:
        for each in self.snapshots:
            if each.snapshot_id == snapshot_id:
                return each
        raise NotFoundError(
            f"the history of {self.uri} has no snapshot {snapshot_id}. The snapshot may have "
            "expired, or it was never the current snapshot of its store: choose one of the "
            "snapshots that snapshots() lists"
        )

    def _rewound(self, position: Position) -> bool:
        """Return True if a rollback removed a snapshot of the position, or if the table never had
        this position.

        Snapshots that only expired do not count.
        """
        if any(
            mine > newest for mine, newest in zip(position.numbers, self.head.numbers, strict=True)
        ):
            return True
        if position.identity is None or position < self.oldest:
            return False
        kept = {(each.store, each.number) for each in self.snapshots}
        places = zip(_STORES, position.numbers, self.oldest.numbers, strict=True)
        if any(mine > oldest and (store, mine) not in kept for store, mine, oldest in places):
            return True
        same = self._state(position.numbers)
        return same is not None and not same.has_identity(position.identity)

    def _state(self, numbers: tuple[int, ...]) -> MixedSnapshot | None:
        """Return the state with these sequence numbers of the change store and the base store.

        Return None if one of its snapshots is not in the history. If the clocks of two writers
        differ, a commit can have an earlier time than the commit before it. Readers may then have
        seen a state that is not in ``snapshots``. This state is put together from the snapshots of
        both stores.
        """
        listed = [each for each in self.snapshots if each.position.numbers == numbers]
        if listed:
            return listed[0]
        parts = [
            each for each in self.snapshots if each.number == numbers[_STORES.index(each.store)]
        ]
        if len(parts) != sum(each > 0 for each in numbers) or not parts:
            return None
        return self._with_numbers(parts[-1], numbers)

    def _seen_between(
        self, snapshot: MixedSnapshot, first: tuple[int, ...], last: tuple[int, ...]
    ) -> MixedSnapshot:
        """Return ``snapshot`` with its position limited to the range from ``first`` to ``last``.

        A number below that of ``first`` is replaced by that of ``first``, and a number above that
        of ``last`` by that of ``last``.
        """
        places = zip(snapshot.position.numbers, first, last, strict=True)
        numbers = tuple(min(max(mine, low), high) for mine, low, high in places)
        if numbers == snapshot.position.numbers:
            return snapshot
        return self._with_numbers(snapshot, numbers)

    def _with_numbers(self, snapshot: MixedSnapshot, numbers: tuple[int, ...]) -> MixedSnapshot:
        newest = {
            each.store: each.of_store.snapshot
            for each in self.snapshots
            if each.number == numbers[_STORES.index(each.store)]
        }
        change, base = (newest.get(store) for store in _STORES)
        is_readable = len(newest) == sum(each > 0 for each in numbers)
        position = Position(numbers, MAIN_BRANCH, _identity(change, base), self.uri)
        return MixedSnapshot(snapshot.store, snapshot.of_store, change, base, position, is_readable)


def mixed_history(pair: LoadedPair) -> MixedHistory:
    """Return the history of a table from the metadata of its stores."""
    uri = pair.base.places.uri
    change, base = (
        history_of(each.metadata, MAIN_BRANCH, each.places.uri) for each in (pair.change, pair.base)
    )
    numbers = (_before(change), _before(base))
    oldest = Position(numbers, MAIN_BRANCH, None, uri)
    newest: dict[str, Snapshot | None] = {"change": None, "base": None}
    expired = {name for name, number in zip(newest, numbers, strict=True) if number}
    found = []
    for store, snapshot in _in_order(_current(pair.change, change), _current(pair.base, base)):
        newest[store] = snapshot.snapshot
        expired.discard(store)
        found.append(_snapshot(store, snapshot, newest, oldest, is_readable=not expired))
    return MixedHistory(found, Position((0, 0), MAIN_BRANCH, None, uri), oldest, uri)


def _snapshot(
    store: str,
    snapshot: BranchSnapshot,
    newest: dict[str, Snapshot | None],
    oldest: Position,
    *,
    is_readable: bool,
) -> MixedSnapshot:
    change, base = newest["change"], newest["base"]
    numbers = tuple(
        before if each is None else each.sequence_number
        for each, before in zip((change, base), oldest.numbers, strict=True)
    )
    position = Position(numbers, MAIN_BRANCH, _identity(change, base), oldest.table)
    return MixedSnapshot(store, snapshot, change, base, position, is_readable)


def _identity(change: Snapshot | None, base: Snapshot | None) -> str:
    return "-".join("" if each is None else str(each.snapshot_id) for each in (change, base))


def _before(history: BranchHistory) -> int:
    """Return the sequence number before the oldest snapshot; 0 if none has expired."""
    if not history.snapshots or history.snapshots[0].snapshot.parent_id is None:
        return 0
    return history.snapshots[0].snapshot.sequence_number - 1


def _current(store: LoadedMetadata, history: BranchHistory) -> list[BranchSnapshot]:
    """Return the snapshots that a reader could see.

    These are the current snapshot and those in the snapshot log; without a log, all snapshots. If
    a transaction publishes several snapshots, the log has only the last of them.
    """
    logged = {each.snapshot_id for each in store.metadata.snapshot_log}
    newest = store.metadata.current_snapshot_id
    return [
        each
        for each in history.snapshots
        if not logged or each.snapshot_id in logged or each.snapshot_id == newest
    ]


def _in_order(
    change: Sequence[BranchSnapshot], base: Sequence[BranchSnapshot]
) -> list[tuple[str, BranchSnapshot]]:
    """Return the snapshots of both stores by time; those of one store keep their order."""
    found: list[tuple[str, BranchSnapshot]] = []
    waiting = [*base]
    for snapshot in change:
        while waiting and waiting[0].time_millis < snapshot.time_millis:
            found.append(("base", waiting.pop(0)))
        found.append(("change", snapshot))
    return [*found, *(("base", each) for each in waiting)]

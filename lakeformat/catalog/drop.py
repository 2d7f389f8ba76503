# SPDX-License-Identifier: Apache-2.0
"""Plans which directories the drop of a Paimon table deletes, and deletes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lakeformat.catalog.leftovers import (
    checking_sibling,
    dropped_path,
    dropped_sibling,
    remove_dropped,
)
from lakeformat.catalog.outside import external_paths_of, location_in
from lakeformat.errors import (
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.paimon.layout import REGISTERED_MARK, TableLayout, partition_directory
from lakeformat.paimon.metadata.schema_file import (
    naming_schema,
    read_schema,
    schema_ids,
    table_identity,
)
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.storage import NO_ROOTS, ExternalRoots, FileInfo, Storage
from lakeformat.storage.links import is_link
from lakeformat.storage.location import location_of
from lakeformat.storage.move_directory import MovesDirectories, mover

__all__ = [
    "SCHEMA_DIRECTORY",
    "DropPlan",
    "plan_drop",
    "refuse_shared_paths",
    "require_planned",
    "run_drop",
]

_BUCKET = re.compile(r"bucket-(\d+|postpone)")
SCHEMA_DIRECTORY = "schema"


@dataclass(frozen=True, slots=True)
class DropPlan:
    """The directories that the drop of a table deletes, and the table's entries in catalogs of
    Iceberg tables.
    """

    table: str
    directory: str
    external_paths: tuple[str, ...]
    """The external paths that the schemas of all branches name.

    They may hold files of other programs, so in them a drop deletes only the table's bucket
    directories.
    """
    partition_keys: tuple[str, ...] = ()
    data_path: str = ""
    roots: ExternalRoots = field(default=NO_ROOTS, repr=False)
    """The external directories in which the catalog allows files of tables."""
    published: tuple[str, ...] = ()
    """The table's entries in catalogs of Iceberg tables, and the directory of its Iceberg metadata
    in the warehouse; the drop deletes them, too.
    """
    kept: str = ""
    """The reason why the drop keeps the table's Iceberg metadata; empty if none is kept."""
    identity: str = field(default="", repr=False)
    """A hash of the first schema. It differs if the table is dropped and created again under its
    name.
    """
    is_new: bool = field(default=False, repr=False, compare=False)
    """True if only a table without snapshots may be dropped. If the table has a snapshot by now,
    the drop raises ``CommitConflictError``.
    """

    def to_dict(self) -> dict[str, object]:
        """Return the fields that a user needs, ready for JSON."""
        return {
            "table": self.table,
            "directory": self.directory,
            "external_paths": [*self.external_paths],
            "published": [*self.published],
            "kept": self.kept,
        }


def plan_drop(storage: Storage, layout: TableLayout, table: str, roots: ExternalRoots) -> DropPlan:
    """Return the plan of a drop of the table.

    ``InvalidRequestError`` is raised for an external path that ``roots`` does not allow, or that
    contains another table or the directory of this table. If the directory of the table is a
    symbolic link, only the link is deleted.
    """
    if is_link(storage, layout.root):
        return DropPlan(
            table, storage.uri(layout.root), (), identity=table_identity(storage, layout)
        )
    paths = external_paths_of(storage, layout)
    mine = location_in(storage, layout.root)
    for address in paths:
        if roots.require(address, f"table {table!r}").real().holds(mine):
            raise InvalidRequestError(
                f"cannot drop {table}: its external path {address} contains the directory of "
                "the table, so the drop would delete more than the table. "
                f"{_by_hand(table, storage.uri(layout.root), address)}"
            )
    plan = DropPlan(table, storage.uri(layout.root), tuple(paths), roots=roots)
    if known := schema_ids(storage, layout):
        plan = replace(plan, identity=table_identity(storage, layout))
    if known and paths:
        schema = read_schema(storage, layout, known[-1])
        with naming_schema(storage, layout, schema.id):
            data_path = schema.table_options.data_file_path_directory
        keys = tuple(schema.partition_keys)
        plan = replace(plan, partition_keys=keys, data_path=data_path)
    _outside(storage, plan)  # raises if a directory there has a table of its own
    return plan


def refuse_shared_paths(plan: DropPlan, others: Iterable[tuple[str, Storage, TableLayout]]) -> None:
    """Raise ``InvalidRequestError`` if an external path of the plan overlaps with an external path
    of another table.

    The drop could delete files of that table. Each other table is given as its name, its storage
    and its paths.
    """
    mine = [location_of(path).real() for path in plan.external_paths]
    for name, place, layout in others:
        for path in external_paths_of(place, layout):
            theirs = location_of(path).real()
            for own, address in zip(mine, plan.external_paths, strict=True):
                if not theirs.overlaps(own):
                    continue
                raise InvalidRequestError(
                    f"the external path {address} of '{plan.table}' and {path} of '{name}' "
                    f"overlap, so dropping '{plan.table}' could delete files of '{name}'. "
                    f"{_by_hand(plan.table, plan.directory, address)}"
                )


def _by_hand(table: str, directory: str, external: str) -> str:
    return (
        f"To drop '{table}', delete its data files in {external} by hand (`lake files {table}` "
        f"lists those of the newest snapshot), then the directory {directory}. In a jdbc catalog, "
        "then drop the table again, to remove its row from the SQL database"
    )


def run_drop(
    storage: Storage, layout: TableLayout, plan: DropPlan, new_id: Callable[[], str]
) -> None:
    """Delete the directories of a plan; after a crash, call it again to delete the rest.

    The buckets in external paths are deleted first. If the storage can rename a directory, the
    directory of the table is then renamed to a hidden name, so that readers never see a part of it.
    On other storages the schemas are deleted last: until then the table still exists, so that a
    drop can be repeated after a crash.
    """
    for place, root in _outside(storage, plan):
        for bucket in _buckets_below(place, root, plan.partition_keys):
            place.delete_directory(bucket)
    at_once = mover(storage)
    if at_once is not None:
        hidden = _hide(storage, at_once, layout, plan, new_id)
        _remove_hidden(storage, layout.root.rpartition("/")[0], hidden, plan)
        return
    for info in storage.list(layout.root):
        if info.name != SCHEMA_DIRECTORY:
            remove = storage.delete_directory if info.is_directory else storage.delete
            remove(info.path)
    storage.delete_directory(layout.root)


def _hide(
    storage: Storage,
    at_once: MovesDirectories,
    layout: TableLayout,
    plan: DropPlan,
    new_id: Callable[[], str],
) -> str | None:
    """Rename the directory of a table to a hidden name, and return its new path.

    Return None if an earlier attempt or another drop has already renamed the directory.

    If ``plan.identity`` is given or ``plan.is_new`` is True, the directory is first renamed to the
    path that ``checking_sibling`` returns, and checked there. If it does not have the planned
    table, or if ``plan.is_new`` is True and the table has a snapshot by now, this rename is undone
    and ``CommitConflictError`` is raised. Another drop deletes a directory with such a path only
    after a check that it has the planned table.
    """
    if not (plan.identity or plan.is_new):  # nothing to check
        hidden = dropped_sibling(layout.root, new_id)
        return hidden if _is_renamed(at_once, layout.root, hidden) else None
    checking = checking_sibling(layout.root, "" if plan.is_new else plan.identity, new_id)
    if not _is_renamed(at_once, layout.root, checking):
        return None
    try:
        _require_same(storage, TableLayout(checking), plan)
        _refuse_written(storage, TableLayout(checking), plan)
    except LakeError:
        if _is_renamed(at_once, checking, layout.root):
            raise
        return None
    hidden = dropped_path(checking)
    return hidden if _is_renamed(at_once, checking, hidden) else None


def _is_renamed(at_once: MovesDirectories, old: str, new: str) -> bool:
    """Rename a directory and return True; return False if it does not exist."""
    try:
        at_once.rename_directory(old, new)
    except NotFoundError:
        return False
    return True


def _require_same(storage: Storage, layout: TableLayout, plan: DropPlan) -> None:
    if plan.identity and table_identity(storage, layout) != plan.identity:
        raise CommitConflictError(
            f"table '{plan.table}' was not dropped: another program recreated it meanwhile. Check "
            "the new table and drop it again"
        )


def require_planned(
    plan: DropPlan, newest: DropPlan, storage: Storage, layout: TableLayout
) -> None:
    """Raise ``CommitConflictError`` unless ``plan`` is equal to the ``newest`` plan of the drop.

    The error is also raised if ``plan.is_new`` is True and the table has a snapshot by now.
    """
    if newest != plan:
        raise CommitConflictError(
            f"table '{plan.table}' was not dropped: another program recreated, renamed or altered "
            "it after the drop was planned. Nothing was deleted; check the table and drop it again"
        )
    _refuse_written(storage, layout, plan)


def _refuse_written(storage: Storage, layout: TableLayout, plan: DropPlan) -> None:
    if plan.is_new and latest_snapshot(storage, layout) is not None:
        raise CommitConflictError(
            f"table '{plan.table}' was not dropped: another program wrote to it meanwhile. Check "
            "its rows, and drop it only if you need none of them"
        )


def _remove_hidden(storage: Storage, directory: str, hidden: str | None, plan: DropPlan) -> None:
    """Delete the directory ``hidden``, and the hidden directories that interrupted drops left.

    Raise ``UnavailableError`` if files could not be deleted; the table is dropped even then.
    """
    try:
        if hidden is not None:
            storage.delete_directory(hidden)
        remove_dropped(storage, directory)
    except UnavailableError as error:
        from lakeformat.types.sentence import sentence  # only for a message

        database = plan.table.partition(".")[0]
        raise UnavailableError(
            f"table '{plan.table}' is dropped, but some files of dropped tables could not be "
            f"deleted: {sentence(error)} Delete them later with catalog.repair('{database}')"
        ) from error


def _outside(storage: Storage, plan: DropPlan) -> list[tuple[Storage, str]]:
    """Return the storage and the table's directory for each external path in which the drop deletes
    files.

    A path with the mark file of a migration is left out: the table did not write the files there
    but registered them, and a drop keeps such files. A path that contains another table raises
    ``InvalidRequestError``.
    """
    found, table = [], f"table {plan.table!r}"
    below = [name for name in plan.data_path.split("/") if name]
    for address in plan.external_paths:
        plan.roots.require_no_table(address, storage, table, below)
        place, path = plan.roots.place(address, storage, table)
        if place.exists(f"{path}/{REGISTERED_MARK}"):
            continue  # a migration registered these plain files: they are kept
        root = _joined(path, *below)
        for info in _next_below(place, root, plan.partition_keys):
            plan.roots.require_no_table(address, storage, table, (*below, info.name))
        found.append((place, root))
    return found


def _buckets_below(
    storage: Storage, directory: str, partition_keys: Sequence[str]
) -> Iterator[str]:
    for info in _next_below(storage, directory, partition_keys):
        if partition_keys:
            yield from _buckets_below(storage, info.path, partition_keys[1:])
        else:
            yield info.path


def _next_below(
    storage: Storage, directory: str, partition_keys: Sequence[str]
) -> Iterator[FileInfo]:
    """Yield each directory in ``directory`` that is named after the first partition key, such as
    ``day=1``. Without partition keys, yield the bucket directories.
    """
    start = partition_directory([(partition_keys[0], "")]) if partition_keys else ""
    for info in storage.list(directory):
        is_next = info.name.startswith(start) if start else _BUCKET.fullmatch(info.name)
        if info.is_directory and is_next:
            yield info


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)

"""Dropping the files of a table: what goes is planned, said, and then removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, LakeError, UnavailableError
from lakeformat.layout import TableLayout
from lakeformat.metadata.branch_directory import branches
from lakeformat.metadata.schema_file import read_schema, schema_ids
from lakeformat.storage import Storage, resolve

__all__ = ["DropPlan", "external_roots", "plan_drop", "run_drop"]

_EXTERNAL_PATHS = "data-file.external-paths"
SCHEMA_DIRECTORY = "schema"


@dataclass(frozen=True, slots=True)
class DropPlan:
    """The directories that are removed with everything in them."""

    table: str
    directory: str
    external_paths: tuple[str, ...]
    """Outside the table; named by one of its schemas, on any branch."""

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values."""
        return {
            "table": self.table,
            "directory": self.directory,
            "external_paths": [*self.external_paths],
        }


def plan_drop(storage: Storage, layout: TableLayout, table: str) -> DropPlan:
    """What dropping a table removes; refuses external paths that hold more than the table."""
    paths = external_roots(storage, layout)
    for address in paths:
        place, path = resolve(address, storage)
        same = place.scheme == storage.scheme and place.uri("x") == storage.uri("x")
        if same and f"{layout.root}/".startswith(f"{path.rstrip('/')}/"):
            raise InvalidRequestError(
                f"{table} names the external path {address}, which its own directory lies in: "
                "dropping the table would remove more than the table; remove its files by hand"
            )
    return DropPlan(table, storage.uri(layout.root), tuple(paths))


def run_drop(storage: Storage, layout: TableLayout, plan: DropPlan) -> None:
    """Remove what the plan says; repeated after a crash, it removes the rest.

    The schemas go last: as long as something is there, they say what it belongs to.
    """
    for address in plan.external_paths:
        place, path = resolve(address, storage)
        place.delete_directory(path)
    for info in storage.list(layout.root):
        if info.name != SCHEMA_DIRECTORY:
            remove = storage.delete_directory if info.is_directory else storage.delete
            remove(info.path)
    storage.delete_directory(layout.root)


def external_roots(storage: Storage, layout: TableLayout) -> list[str]:
    """The external paths named in any schema of any branch."""
    found: dict[str, None] = {}
    for branch in (layout, *_other_branches(storage, layout)):
        for schema_id in schema_ids(storage, branch):
            options = _options(storage, branch, schema_id)
            for address in options.get(_EXTERNAL_PATHS, "").split(","):
                if address.strip():
                    found[address.strip()] = None
    return [*found]


def _other_branches(storage: Storage, layout: TableLayout) -> Iterator[TableLayout]:
    for branch in branches(storage, layout):
        yield layout.on_branch(branch.name)


def _options(storage: Storage, layout: TableLayout, schema_id: int) -> dict[str, str]:
    try:
        return dict(read_schema(storage, layout, schema_id).options)
    except UnavailableError:
        raise
    except LakeError as error:
        raise type(error)(
            f"{error} (it may name files outside the table, which dropping it would leave behind)"
        ) from error

# SPDX-License-Identifier: Apache-2.0
"""Asset URIs of tables, ``lake://<database>/<table>``, checked when a DAG is parsed.

The URI of a table in another lake names that lake's connection:
``lake://shop/orders?conn_id=other``. The URI of an asset with watchers names them:
``lake://shop/orders?watcher=commits``. So it differs from the URI that tasks use as an outlet.

Database and table keep their case, because two tables of a catalog may differ only by case. This
module imports no data library, because every DAG file would then load it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from airflow.sdk import Asset, AssetWatcher

__all__ = [
    "SCHEME",
    "TableAddress",
    "address_of",
    "create_asset",
    "is_watched",
    "lake_asset",
    "refuse_shortened",
    "refuse_watched",
    "sanitize_uri",
    "split_table_name",
]

SCHEME = "lake"
_DEFAULT_CONN_ID = "lake_default"
_CONNECTION, _WATCHER = "conn_id", "watcher"
# A copy of the library's rule for names: importing it would load Arrow. A test compares them.
_FORBIDDEN = r"./\\$%:*?\"<>|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NAME = re.compile(rf"[^\s{_FORBIDDEN}][^{_FORBIDDEN}]*")
_BRANCH = "branch_"


@dataclass(frozen=True, slots=True)
class TableAddress:
    """The name of a table, and the connection of its lake."""

    database: str
    table: str
    """The name of the table, with ``$branch_<name>`` at its end for a branch."""
    lake_conn_id: str = _DEFAULT_CONN_ID

    @property
    def name(self) -> str:
        """``database.table``, the name of the table in the lake's catalog."""
        return f"{self.database}.{self.table}"

    @property
    def uri(self) -> str:
        """The URI of the table's asset without watchers; it does not name the default
        connection.
        """
        return self.watched_uri(())

    def watched_uri(self, watchers: Iterable[str]) -> str:
        """Return the URI of the table's asset that has watchers with these names."""
        other = self.lake_conn_id != _DEFAULT_CONN_ID
        given = [(_CONNECTION, self.lake_conn_id)] if other else []
        given += [(_WATCHER, name) for name in sorted({*watchers})]
        query = "&".join(f"{key}={quote(text, safe='')}" for key, text in given)
        path = f"/{quote(self.table, safe='$')}"
        return urlunsplit((SCHEME, quote(self.database, safe=""), path, query, ""))


def sanitize_uri(parts: SplitResult) -> SplitResult:
    """Return the normal form of a URI; raise ``ValueError`` for an invalid URI. Airflow calls this
    function for the scheme ``lake``.
    """
    return urlsplit(_address(parts).watched_uri(_watchers_in(parts)))


def address_of(uri: str) -> TableAddress:
    """Return the table that a URI names; raise ``ValueError`` if the URI is not that of a table."""
    parts = urlsplit(uri)
    if parts.scheme.lower() != SCHEME:
        raise ValueError(f"{uri!r} is not a URI of a lake table: write lake://<database>/<table>")
    return _address(parts)


def split_table_name(name: str) -> tuple[str, str]:
    """Return database and table of ``database.table``; raise ``ValueError`` for an invalid name.
    The table need not exist.
    """
    given: object = name
    if not isinstance(given, str) or name.count(".") != 1:
        raise ValueError(f"{name!r} is not a table name: write database.table")
    database, table = name.split(".")
    _check("database", database, name)
    base, dollar, branch = table.partition("$")
    _check("table", base, name)
    if dollar and not _is_branch(branch):
        raise ValueError(f"{name!r} is a system table: write {f'{database}.{base}'!r}")
    if dollar:
        _check("branch", branch.removeprefix(_BRANCH), name)
    return database, table


def lake_asset(
    table: str,
    *,
    lake_conn_id: str = _DEFAULT_CONN_ID,
    name: str | None = None,
    watchers: Iterable[AssetWatcher] | None = None,
    **more: Any,
) -> Asset:
    """Return the asset of ``database.table``. Its name is its URI, unless ``name`` is given.

    Airflow identifies an asset by name and URI together, so declare an asset the same way
    everywhere. An asset with ``watchers`` gets its events from the watchers, for commits of any
    program.

    Raises ``ValueError`` for an invalid table name, a watcher without a name or of another table,
    and for ``name`` together with ``watchers``. ``more`` are further arguments of Airflow's
    ``Asset``.
    """
    from airflow.sdk import Asset

    address = TableAddress(*split_table_name(table), lake_conn_id)
    if not (watching := [*(watchers or ())]):
        return Asset(name=address.uri if name is None else name, uri=address.uri, **more)
    if name is not None:
        raise ValueError(
            f"the asset of {table} has watchers, so its name is its URI, which contains the names "
            f"of the watchers: leave out name={name!r}"
        )
    names: list[Any] = [watcher.name for watcher in watching]
    if not all(isinstance(each, str) and each for each in names):
        raise ValueError(
            f"a watcher of {table} has no name: give each AssetWatcher a name, which becomes part "
            "of the asset's URI"
        )
    uri = address.watched_uri(names)
    own = [_watching_alone(watcher, address, uri) for watcher in watching]
    return Asset(name=uri, uri=uri, watchers=own, **more)


def create_asset(
    *, table: str, lake_conn_id: str = _DEFAULT_CONN_ID, extra: dict[str, Any] | None = None
) -> Asset:
    """Return the asset of a table. Airflow calls this function when a hook reports an asset that
    the hook has read or written. Raise ``ValueError`` for an invalid table name.
    """
    return lake_asset(table, lake_conn_id=lake_conn_id, extra=extra)


def refuse_watched(outlets: Iterable[Any]) -> None:
    """Raise ``ValueError`` if an outlet is an asset with watchers: the watcher and the task would
    both send an event.
    """
    for outlet in outlets:
        uri = getattr(outlet, "uri", None)
        if isinstance(uri, str) and is_watched(uri):
            asked = address_of(uri)
            other = asked.lake_conn_id != _DEFAULT_CONN_ID
            more = f", lake_conn_id={asked.lake_conn_id!r}" if other else ""
            raise ValueError(
                f"{uri!r} cannot be an outlet, because this asset has a watcher, which already "
                "sends its events. Declare the asset without a watcher as the outlet: "
                f"lake_asset({asked.name!r}{more})"
            )


def is_watched(uri: str) -> bool:
    """Return True if a URI is that of an asset with watchers."""
    return _is_lake(uri) and bool(_watchers_in(urlsplit(uri)))


def refuse_shortened(assets: Iterable[Any]) -> None:
    """Raise ``ValueError`` for the asset of a table if Airflow has dropped a part of its URI.

    Airflow drops a fragment, a login and an empty query value before it calls ``sanitize_uri``. But
    if the DAG gives the asset no name, its name is the full URI that the DAG gives. So this
    function searches the name for these parts.
    """
    for asset in assets:
        refuse_shortened(getattr(asset, "objects", ()))  # such as the assets of a condition
        name, uri = getattr(asset, "name", None), getattr(asset, "uri", None)
        if isinstance(name, str) and isinstance(uri, str) and _is_lake(name) and _is_lake(uri):
            _refuse_other(name.rstrip("/"), uri)


def _watching_alone(watcher: AssetWatcher, address: TableAddress, uri: str) -> AssetWatcher:
    """Return the watcher with a copy of its trigger that belongs only to the asset ``uri``.

    Airflow cannot store the position of a trigger that two assets share. A watcher whose
    trigger is not a ``LakeSnapshotEventTrigger`` is returned unchanged. Raise ``ValueError`` if the
    trigger watches another table.
    """
    trigger: Any = watcher.trigger
    if not hasattr(trigger, "for_asset"):
        return watcher
    if (trigger.table, trigger.lake_conn_id) != (address.name, address.lake_conn_id):
        raise ValueError(
            f"the watcher {watcher.name!r} watches {trigger.table!r} of connection "
            f"{trigger.lake_conn_id!r}, but its asset is {address.name!r} of connection "
            f"{address.lake_conn_id!r}: make both the same"
        )
    return type(watcher)(name=watcher.name, trigger=trigger.for_asset(uri))


def _watchers_in(parts: SplitResult) -> list[str]:
    return [name for key, name in parse_qsl(parts.query) if key == _WATCHER]


def _is_lake(text: str) -> bool:
    return text.lower().startswith(f"{SCHEME}://")


def _refuse_other(written: str, uri: str) -> None:
    if "@" in urlsplit(written).netloc and "@" not in unquote(urlsplit(uri).netloc):
        raise ValueError(
            f"{uri!r} was given with a login, which is not shown here: leave it out, "
            "because the connection holds the login"
        )
    address_of(written)


def _address(parts: SplitResult) -> TableAddress:
    shown = urlunsplit(parts)
    if parts.fragment:
        raise ValueError(
            f"{shown!r} has a fragment: leave it out; a '#' in a name is written as %23"
        )
    database, table = unquote(parts.netloc), unquote(parts.path.removeprefix("/"))
    try:
        split_table_name(f"{database}.{table}")
    except ValueError as reason:
        known = str(reason).partition(": write ")[0]
        why = f" ({known})" if database and table else ""
        raise ValueError(
            f"{shown!r} is not a URI of a lake table{why}: write lake://<database>/<table>"
        ) from None
    return TableAddress(database, table, _connection(parts.query, shown))


def _connection(query: str, shown: str) -> str:
    given = parse_qsl(query, keep_blank_values=True)
    connections = [text for key, text in given if key == _CONNECTION]
    is_known = all(key in (_CONNECTION, _WATCHER) and text for key, text in given)
    if len(connections) > 1 or not is_known:
        raise ValueError(
            f"{shown!r} has a wrong query: after '?' write at most one conn_id=<connection>, "
            "and watcher=<name> for each watcher"
        )
    return connections[0] if connections else _DEFAULT_CONN_ID


def _is_branch(text: str) -> bool:
    return text.startswith(_BRANCH)


def _check(what: str, text: str, whole: str) -> None:
    if _NAME.fullmatch(text):
        return
    found = re.search(rf"^$|^\s|[{_FORBIDDEN}]", text)
    assert found is not None
    why = f"it has {found[0]!r}" if found[0].strip() else "it is empty"
    if found[0].isspace():
        why = "it begins with a space" if found.start() == 0 else f"it has {found[0]!r}"
    raise ValueError(f"the {what} name {text!r} of {whole!r} is not allowed: {why}")

"""``lake://<database>/<table>``: how a table is called as an asset, checked when a DAG is parsed.

A table of another connection than the default one says so: ``lake://shop/orders?conn_id=other``.
An asset with watchers is one of its own: ``lake://shop/orders?watcher=commits``. Airflow 3.3 ends a
watcher whenever it reads a DAG that names the watcher's asset without it, as an outlet for example.
Database and table keep their case, as two tables of a catalog may differ by it alone. Characters
that a URI cannot hold are percent-encoded. No data stack is loaded here: every DAG file would pay.
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
# The library's rule for names, written down again: importing it would load Arrow. A test compares.
_FORBIDDEN = r"./\\$%:*?\"<>|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NAME = re.compile(rf"[^\s{_FORBIDDEN}][^{_FORBIDDEN}]*")
_BRANCH = "branch_"


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table and the connection that leads to it."""

    database: str
    table: str
    """With ``$branch_<name>`` where a branch is meant."""
    lake_conn_id: str = _DEFAULT_CONN_ID

    @property
    def name(self) -> str:
        """``database.table``, as the library calls it."""
        return f"{self.database}.{self.table}"

    @property
    def uri(self) -> str:
        """The one URI of this table; the default connection is not named."""
        return self.watched_uri(())

    def watched_uri(self, watchers: Iterable[str]) -> str:
        """The URI of its asset with watchers of these names."""
        other = self.lake_conn_id != _DEFAULT_CONN_ID
        given = [(_CONNECTION, self.lake_conn_id)] if other else []
        given += [(_WATCHER, name) for name in sorted({*watchers})]
        query = "&".join(f"{key}={quote(text, safe='')}" for key, text in given)
        path = f"/{quote(self.table, safe='$')}"
        return urlunsplit((SCHEME, quote(self.database, safe=""), path, query, ""))


def sanitize_uri(parts: SplitResult) -> SplitResult:
    """Airflow's handler of the scheme: the normal form, or a ``ValueError`` that says why not."""
    return urlsplit(_address(parts).watched_uri(_watchers_in(parts)))


def address_of(uri: str) -> TableAddress:
    """The table a URI names."""
    parts = urlsplit(uri)
    if parts.scheme.lower() != SCHEME:
        raise ValueError(f"{uri!r} is no URI of a lake table: write lake://<database>/<table>")
    return _address(parts)


def split_table_name(name: str) -> tuple[str, str]:
    """``database.table``, checked without opening anything."""
    given: object = name
    if not isinstance(given, str) or name.count(".") != 1:
        raise ValueError(f"a table is named database.table, got {name!r}")
    database, table = name.split(".")
    _check("database", database, name)
    base, dollar, branch = table.partition("$")
    _check("table", base, name)
    if dollar:
        _check("branch", branch.removeprefix(_BRANCH) if _is_branch(branch) else "", name)
    return database, table


def lake_asset(
    table: str,
    *,
    lake_conn_id: str = _DEFAULT_CONN_ID,
    name: str | None = None,
    watchers: Iterable[AssetWatcher] | None = None,
    **more: Any,
) -> Asset:
    """The asset of ``database.table``; its name is its URI unless another is given.

    Airflow tells assets apart by name and URI together: declare an asset the same way everywhere.
    One with ``watchers`` is another than the one that tasks have as an outlet, and is told of by
    its watchers, whoever commits; their names are part of its URI, which is its name.
    """
    from airflow.sdk import Asset

    address = TableAddress(*split_table_name(table), lake_conn_id)
    if not (watching := [*(watchers or ())]):
        return Asset(name=address.uri if name is None else name, uri=address.uri, **more)
    if name is not None:
        raise ValueError(
            f"the asset of {table} with watchers is called by its URI, so that it is told apart "
            f"from the one without: leave out name={name!r}"
        )
    names: list[Any] = [watcher.name for watcher in watching]
    if not all(isinstance(each, str) and each for each in names):
        raise ValueError(f"the watchers of {table} need names, which tell their assets apart")
    uri = address.watched_uri(names)
    own = [_watching_alone(watcher, address, uri) for watcher in watching]
    return Asset(name=uri, uri=uri, watchers=own, **more)


def create_asset(
    *, table: str, lake_conn_id: str = _DEFAULT_CONN_ID, extra: dict[str, Any] | None = None
) -> Asset:
    """Airflow's factory of the scheme, which hooks report what they read and wrote through."""
    return lake_asset(table, lake_conn_id=lake_conn_id, extra=extra)


def refuse_watched(outlets: Iterable[Any]) -> None:
    """Raise for an asset that its watcher tells of: an event of a task would be a second one."""
    for outlet in outlets:
        uri = getattr(outlet, "uri", None)
        if isinstance(uri, str) and is_watched(uri):
            raise ValueError(
                f"{uri!r} is told of by its watcher: as an outlet, give the task "
                f"lake_asset({address_of(uri).name!r})"
            )


def is_watched(uri: str) -> bool:
    """Whether an asset is one with watchers."""
    return _is_lake(uri) and bool(_watchers_in(urlsplit(uri)))


def refuse_shortened(assets: Iterable[Any]) -> None:
    """Raise for an asset of a table whose URI had more to say than Airflow has kept.

    Airflow drops a fragment, a login and an empty value of the query before it asks a handler. An
    asset without a name of its own is named as its URI was written, so that there it can be seen.
    """
    for asset in assets:
        refuse_shortened(getattr(asset, "objects", ()))  # of a condition: all of them, or any
        name, uri = getattr(asset, "name", None), getattr(asset, "uri", None)
        if isinstance(name, str) and isinstance(uri, str) and _is_lake(name) and _is_lake(uri):
            _refuse_other(name.rstrip("/"), uri)


def _watching_alone(watcher: AssetWatcher, address: TableAddress, uri: str) -> AssetWatcher:
    """How far a watcher of ours has come is kept only if its trigger is no other asset's too."""
    trigger: Any = watcher.trigger
    if not hasattr(trigger, "for_asset"):
        return watcher
    if (trigger.table, trigger.lake_conn_id) != (address.name, address.lake_conn_id):
        raise ValueError(
            f"the watcher {watcher.name!r} watches {trigger.table!r} of {trigger.lake_conn_id!r}, "
            f"and its asset is {address.name!r} of {address.lake_conn_id!r}"
        )
    return type(watcher)(name=watcher.name, trigger=trigger.for_asset(uri))


def _watchers_in(parts: SplitResult) -> list[str]:
    return [name for key, name in parse_qsl(parts.query) if key == _WATCHER]


def _is_lake(text: str) -> bool:
    return text.lower().startswith(f"{SCHEME}://")


def _refuse_other(written: str, uri: str) -> None:
    if "@" in urlsplit(written).netloc and "@" not in unquote(urlsplit(uri).netloc):
        raise ValueError(
            f"{uri!r} is written with a login, which is not shown here: a URI of a table has none, "
            "the connection does"
        )
    address_of(written)


def _address(parts: SplitResult) -> TableAddress:
    shown = urlunsplit(parts)
    if parts.fragment:
        raise ValueError(
            f"{shown!r} asks for more than a table: nothing stands behind it, and '#' is written "
            "as %23 in a name"
        )
    database, table = unquote(parts.netloc), unquote(parts.path.removeprefix("/"))
    try:
        split_table_name(f"{database}.{table}")
    except ValueError as reason:
        raise ValueError(f"{shown!r} is not lake://<database>/<table>: {reason}") from None
    return TableAddress(database, table, _connection(parts.query, shown))


def _connection(query: str, shown: str) -> str:
    given = parse_qsl(query, keep_blank_values=True)
    connections = [text for key, text in given if key == _CONNECTION]
    is_known = all(key in (_CONNECTION, _WATCHER) and text for key, text in given)
    if len(connections) > 1 or not is_known:
        raise ValueError(
            f"{shown!r} asks for more than a table: behind '?' stand conn_id=<connection>, "
            "watcher=<name> or nothing"
        )
    return connections[0] if connections else _DEFAULT_CONN_ID


def _is_branch(text: str) -> bool:
    return text.startswith(_BRANCH)


def _check(what: str, text: str, whole: str) -> None:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{whole!r} has no {what} name that a table can have: {text!r}")

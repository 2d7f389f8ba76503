# SPDX-License-Identifier: Apache-2.0
"""Declares every catalog option once: key, type, default and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.paimon.options.kinds import BOOLEAN, DURATION, Kind, one_of, whole_number
from lakeformat.paimon.options.option import Declaration
from lakeformat.publish import IcebergPublication
from lakeformat.storage.walls import EXTERNAL_ROOTS, NO_ROOTS, ExternalRoots
from lakeformat.types.closest import closest

if TYPE_CHECKING:
    from lakeformat.publish.targets.entry import Targets

__all__ = ["FILESYSTEM", "JDBC", "CatalogOptions", "declared_catalog_options"]

T = TypeVar("T")
D = TypeVar("D")
FILESYSTEM, JDBC = "filesystem", "jdbc"
_DRIVER_PREFIX, _DEFAULT_PREFIX = "jdbc.", "table-default."
_TEXT: Kind[str] = Kind("text", str)
_ONLY_WITH_DATABASE = "needs the jdbc metastore: leave the option out, or set metastore to jdbc"


def _roots(text: str) -> ExternalRoots:
    return ExternalRoots.of(each.strip() for each in text.split(",")) if text.strip() else NO_ROOTS


class CatalogOption(Declaration[T]):
    """An option of a catalog of Paimon tables."""

    noun = "catalog option"


class CatalogOptions:
    """The checked options of one catalog of Paimon tables.

    Its repr shows only keys, because values may be secrets.
    """

    metastore = CatalogOption(
        "metastore",
        one_of(FILESYSTEM, JDBC),
        FILESYSTEM,
        "Keeps the list of databases and tables: `filesystem` as directories of the warehouse, "
        "`jdbc` in a SQL database.",
    )
    uri = CatalogOption(
        "uri",
        _TEXT,
        "",
        "Required with the jdbc metastore: the address of the SQL database (SQLite or PostgreSQL), "
        "as SQLAlchemy or Java writes it, such as `sqlite:////data/catalog.db` or "
        "`jdbc:postgresql://host/db`.",
    )
    catalog_key = CatalogOption(
        "catalog-key",
        _TEXT,
        "jdbc",
        "Name of the catalog, for several catalogs in one SQL database.",
    )
    case_sensitive = CatalogOption(
        "case-sensitive",
        BOOLEAN,
        "true with filesystem, false with jdbc",
        "Allows upper-case letters in names of new databases and tables; engines that ignore case "
        "cannot read such names.",
    )
    lock_enabled = CatalogOption(
        "lock.enabled",
        BOOLEAN,
        "true with jdbc for tables on a storage that cannot rename directories, else false",
        "If true, commits of snapshots take the table's lock in the SQL database. Creating, "
        "altering, renaming, dropping and repairing a table always take it.",
    )
    lock_key_max_length = CatalogOption(
        "lock-key-max-length",
        whole_number(1, 2**31 - 1),
        "255",
        "Longest key of a lock, in characters, and the width of its column in a new lock table.",
    )
    lock_check_max_sleep_millis = CatalogOption(
        "lock-check-max-sleep", DURATION, "8 s", "Longest pause between two checks of a lock."
    )
    lock_acquire_timeout_millis = CatalogOption(
        "lock-acquire-timeout",
        DURATION,
        "8 min",
        "Longest wait for a lock, and the lifetime of a lock that its holder does not renew.",
    )
    client_pool_size = CatalogOption(
        "client-pool-size",
        whole_number(1, 1000),
        "2",
        "Number of connections to the SQL database that are kept open.",
    )
    sync_all_properties = CatalogOption(
        "sync-all-properties",
        BOOLEAN,
        "true",
        "Copies the options of tables into the SQL database, for other programs.",
    )

    external_roots = CatalogOption(
        EXTERNAL_ROOTS,
        Kind("paths or URIs of directories, with commas between", _roots),
        "",
        "Directories that may have files of tables, besides the directory of each table. Files "
        "elsewhere are refused, even if a table's metadata names them.",
    )

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})
        self._check()

    def __repr__(self) -> str:
        return f"<CatalogOptions {', '.join(sorted(self._raw))}>"

    def get(self, option: CatalogOption[T]) -> T:
        """Return the parsed value of an option; the option's default if it is not set."""
        return option.parse(self._raw.get(option.key, option.default))

    def get_or(self, option: CatalogOption[T], default: D) -> T | D:
        """Return the parsed value of an option; ``default`` if it is not set."""
        return option.parse(self._raw[option.key]) if option.key in self._raw else default

    @property
    def driver_properties(self) -> dict[str, str]:
        """The options ``jdbc.<key>`` for the driver of the SQL database, without ``jdbc.``."""
        return self._below(_DRIVER_PREFIX)

    def publication(self) -> IcebergPublication:
        """Return the observer that publishes Paimon tables as Iceberg tables after each commit."""
        given = {key: value for key, value in self._raw.items() if key.startswith(PUBLISHED_PREFIX)}

        def targets() -> Targets:
            # Few tables are published in a catalog.
            from lakeformat.catalog.publication.connection import PublishingConnection

            return PublishingConnection(given)

        return IcebergPublication(targets)

    @property
    def table_defaults(self) -> dict[str, str]:
        """The default options of new tables: ``table-default.<key>``, without this prefix."""
        return self._below(_DEFAULT_PREFIX)

    def _below(self, prefix: str) -> dict[str, str]:
        found = ((key, value) for key, value in self._raw.items() if key.startswith(prefix))
        return {key.removeprefix(prefix): value for key, value in found}

    def _check(self) -> None:
        pairs: Iterable[tuple[object, object]] = self._raw.items()
        for key, value in pairs:
            if not isinstance(key, str) or not isinstance(value, str):
                wrong = value if isinstance(key, str) else key
                raise InvalidRequestError(
                    f"catalog option {key!r} and its value must both be str, not "
                    f"{type(wrong).__name__}"
                )
        known = {option.key: option for option in declared_catalog_options()}
        self._refuse_iceberg_metastore()
        for key in self._raw:
            if key in known:
                known[key].parse(self._raw[key])
            elif key.startswith(PUBLISHED_PREFIX):
                from lakeformat.catalog.publication.connection_options import check_published

                check_published(key)
            elif not (key.startswith((_DRIVER_PREFIX, _DEFAULT_PREFIX)) and "." in key[:-1]):
                # Needed only for the message.
                from lakeformat.storage.store_options import STORE_OPTIONS

                near = closest(key, [*known, *(each.name for each in STORE_OPTIONS)])
                raise InvalidRequestError(
                    f"catalog option {key!r} is not supported by this version: leave it out{near}"
                )
        if self.get(self.metastore) == FILESYSTEM:
            self._refuse_database_options()

    def _refuse_iceberg_metastore(self) -> None:
        """Raise ``InvalidRequestError`` if the options name a metastore of Iceberg catalogs.

        The message names the format and the metastore to set.
        """
        named, uri = self._raw.get(self.metastore.key), self._raw.get(self.uri.key)
        if named in (FILESYSTEM, JDBC) or (named is None and uri is None):
            return
        from lakeformat.catalog.iceberg.options import (  # only for a message
            METASTORES,
            SQL,
            metastore_of_uri,
        )

        likely = metastore_of_uri(uri or "") if named is None else named
        if likely not in METASTORES:
            return
        jdbc = "set metastore to 'jdbc' for Paimon tables, or " if likely == SQL else ""
        given, also, typed = f"'metastore' ({named!r})", "", ""
        if named is None:
            given = "'uri' without 'metastore'"
            also, typed = f" and metastore to {likely!r}", f" --metastore {likely}"
        raise InvalidRequestError(
            f"catalog option {given} does not fit a catalog of Paimon tables, which is the "
            f"default: {jdbc}set format to 'iceberg'{also} for Iceberg tables "
            f"(`lake --format iceberg{typed}`)"
        )

    def _refuse_database_options(self) -> None:
        shared = {self.metastore.key, self.case_sensitive.key, self.external_roots.key}
        for key in self._raw:
            if key == self.lock_enabled.key and not self.get(self.lock_enabled):
                continue
            if key not in shared and not key.startswith((_DEFAULT_PREFIX, PUBLISHED_PREFIX)):
                raise InvalidRequestError(f"catalog option {key!r} {_ONLY_WITH_DATABASE}")


def declared_catalog_options() -> list[CatalogOption[Any]]:
    """Return all declared options, sorted by key."""
    found = [value for value in vars(CatalogOptions).values() if isinstance(value, CatalogOption)]
    return sorted(found, key=lambda option: option.key)

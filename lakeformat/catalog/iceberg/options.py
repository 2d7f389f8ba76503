# SPDX-License-Identifier: Apache-2.0
"""Declares the options of catalogs of Iceberg tables, each with the metastores that have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage import NO_ROOTS, ExternalRoots, is_storage_option
from lakeformat.storage.shown import without_credentials
from lakeformat.storage.store_options import STORE_OPTIONS
from lakeformat.storage.walls import EXTERNAL_ROOTS
from lakeformat.types.closest import closest

__all__ = [
    "CATALOG_NAME",
    "GLUE",
    "HIVE",
    "HIVE_TIMEOUT",
    "ICEBERG_OPTIONS",
    "METASTORES",
    "PATH",
    "REST",
    "SQL",
    "WAREHOUSE",
    "IcebergOption",
    "IcebergOptions",
    "client_options",
    "metastore_of_uri",
]

PATH, SQL, REST, HIVE, GLUE = METASTORES = ("path", "sql", "rest", "hive", "glue")
CATALOG_NAME, WAREHOUSE = "catalog-name", "warehouse"
HIVE_TIMEOUT = "hive.timeout-seconds"
_OTHER_NAMES = {"filesystem": PATH, "hadoop": PATH, "jdbc": SQL, "thrift": HIVE}
_BY_SCHEME = {
    "http": REST,
    "https": REST,
    "jdbc": SQL,
    "postgresql": SQL,
    "sqlite": SQL,
    "thrift": HIVE,
}
_OF_OTHER_CLIENTS = {"type": "metastore", "catalog-type": "metastore", "catalog-impl": "metastore"}
"""Option keys of Iceberg's own clients, each with the key of this library."""
_JDBC, _HEADER = "jdbc.", "header."
_PAIMON_PREFIXES = ("table-default.", "lock", "sync-", "client-pool-")
_PAIMON = ("case-sensitive", "catalog-key")


@dataclass(frozen=True, slots=True)
class IcebergOption:
    """An option of a catalog: its key, its meaning, and the metastores that have it."""

    key: str
    metastores: tuple[str, ...]
    sentence: str
    is_secret: bool = False


def _client(key: str, sentence: str, metastore: str, *, is_secret: bool = False) -> IcebergOption:
    return IcebergOption(key, (metastore,), sentence, is_secret)


ICEBERG_OPTIONS = (
    IcebergOption(
        EXTERNAL_ROOTS,
        METASTORES,
        "Directories, with commas between, that are allowed for tables outside of the "
        "warehouse, and for files outside of their table.",
    ),
    _client(
        CATALOG_NAME,
        "Name of the catalog in the SQL database, as Spark or Flink calls it. Default: `default`.",
        SQL,
    ),
    _client(
        WAREHOUSE,
        "Name of the warehouse in the service. Default: the warehouse that you open (`-w`).",
        REST,
    ),
    _client("token", "Token that each request sends.", REST, is_secret=True),
    _client(
        "credential",
        "`client-id:secret`, with which the client gets a token.",
        REST,
        is_secret=True,
    ),
    _client(
        "oauth2-server-uri",
        "Address of the server that gives a token for `credential`. Default: `/v1/oauth/tokens` "
        "below `uri`.",
        REST,
    ),
    _client(
        "scope",
        "Scope of the token that the client gets for `credential`. Default: `catalog`.",
        REST,
    ),
    _client("audience", "Audience of the token that the client gets for `credential`.", REST),
    _client("resource", "Resource of the token that the client gets for `credential`.", REST),
    _client("rest.sigv4-enabled", "`true` signs each request as AWS does; needs boto3.", REST),
    _client(
        "rest.signing-region",
        "AWS region for `rest.sigv4-enabled`. Default: that of the AWS configuration.",
        REST,
    ),
    _client(
        "rest.signing-name",
        "AWS service for `rest.sigv4-enabled`, such as `glue`. Default: `execute-api`.",
        REST,
    ),
    _client("ugi", "User of the requests and its groups: `user:group1,group2`.", HIVE),
    _client(
        HIVE_TIMEOUT,
        "The longest time, in seconds, that the metastore may take to connect or to answer. "
        "Default: 60.",
        HIVE,
    ),
    _client("hive.hive2-compatible", "`true` for a Hive metastore of version 2.", HIVE),
    _client("hive.kerberos-authentication", "`true` authenticates with Kerberos.", HIVE),
    _client(
        "hive.kerberos-service-name",
        "Name of the metastore's service in Kerberos. Default: `hive`.",
        HIVE,
    ),
    _client("glue.id", "AWS account of the Glue catalog. Default: that of the credentials.", GLUE),
    _client(
        "glue.region",
        "AWS region of the Glue catalog. Default: that of the AWS configuration.",
        GLUE,
    ),
    _client("glue.endpoint", "Address of the Glue service.", GLUE),
    _client("glue.profile-name", "Profile of the AWS configuration.", GLUE),
    _client(
        "glue.access-key-id",
        "AWS access key. Default: the credentials of the AWS configuration.",
        GLUE,
    ),
    _client("glue.secret-access-key", "Secret of `glue.access-key-id`.", GLUE, is_secret=True),
    _client(
        "glue.session-token", "Token of a temporary `glue.access-key-id`.", GLUE, is_secret=True
    ),
)
_BY_KEY = {option.key: option for option in ICEBERG_OPTIONS}


@dataclass(frozen=True, slots=True)
class IcebergOptions:
    """The checked options of one catalog.

    The repr leaves out the URI and all options whose values may be secrets.
    """

    metastore: str
    uri: str = field(repr=False)
    storage: Mapping[str, str] = field(repr=False)
    """The options of the storage, such as ``s3.endpoint``."""
    client: Mapping[str, str] = field(repr=False)
    """The options of the metastore's client, such as ``token`` or ``catalog-name``."""
    external_roots: ExternalRoots

    @classmethod
    def of(cls, given: Mapping[str, str]) -> IcebergOptions:
        """Check the given options, which may include ``metastore`` and ``uri``, and return them.

        They are divided into options of the storage, options of the metastore's client, and
        ``external-roots``: the directories in which tables may have files outside of their own
        directories. An option that the metastore does not have raises ``InvalidRequestError``; an
        option of Paimon catalogs raises ``UnsupportedError``.
        """
        pairs: Iterable[tuple[object, object]] = given.items()
        for key, value in pairs:
            if not isinstance(key, str) or not isinstance(value, str):
                wrong = value if isinstance(key, str) else key
                raise InvalidRequestError(
                    f"catalog option {key!r} and its value must both be str, not "
                    f"{type(wrong).__name__}"
                )
        rest = dict(given)
        metastore, uri = rest.pop("metastore", PATH), rest.pop("uri", "")
        _check_metastore(metastore, uri)
        storage = {key: rest.pop(key) for key in given if is_storage_option(key)}
        roots = rest.pop(EXTERNAL_ROOTS, "")
        for key in rest:
            _check(key, metastore)
        external = (
            ExternalRoots.of(each.strip() for each in roots.split(",")) if roots else NO_ROOTS
        )
        return cls(metastore, uri, storage, rest, external)

    @property
    def shown_uri(self) -> str:
        """The address of the metastore, without credentials."""
        return without_credentials(self.uri)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of secret options, which no message may show."""
        hidden = [
            value
            for key, value in self.client.items()
            if key.startswith(_HEADER) or (key in _BY_KEY and _BY_KEY[key].is_secret)
        ]
        # Of `client-id:secret` the secret alone is hidden, too.
        return tuple({*hidden, *(each.partition(":")[2] for each in hidden)} - {""})


def client_options(metastore: str) -> frozenset[str]:
    """Return the keys of the options that only the client of a metastore reads."""
    return frozenset(
        each.key
        for each in ICEBERG_OPTIONS
        if metastore in each.metastores and each.key != EXTERNAL_ROOTS
    )


def metastore_of_uri(uri: str) -> str | None:
    """Return the metastore for the scheme of ``uri``; None for an unknown scheme."""
    scheme = uri.strip().partition(":")[0].partition("+")[0].casefold()
    return _BY_SCHEME.get(scheme)


def _check_metastore(metastore: str, uri: str) -> None:
    if metastore not in METASTORES:
        meant = _OTHER_NAMES.get(metastore)
        near = f"; did you mean {meant!r}?" if meant else closest(metastore, METASTORES)
        raise InvalidRequestError(
            f"a catalog of Iceberg tables has no metastore {metastore!r}: use one of "
            f"{', '.join(METASTORES)}{near}"
        )
    if metastore == PATH and uri:
        likely = metastore_of_uri(uri)
        others = f"another metastore ({', '.join(METASTORES[1:])})"
        named = f"the metastore of this uri: {likely} (`--metastore {likely}`)"
        raise InvalidRequestError(
            "the path metastore has no uri, because it lists directories: leave out the uri, or "
            f"name {named if likely else others}"
        )
    if metastore in (SQL, REST, HIVE) and not uri.strip():
        example = {
            SQL: "postgresql+psycopg2://user@host/database",
            REST: "https://catalog.example.org",
            HIVE: "thrift://host:9083",
        }
        raise InvalidRequestError(
            f"the {metastore} metastore needs uri=…, such as {example[metastore]}"
        )


def _check(key: str, metastore: str) -> None:
    """Raise ``InvalidRequestError`` unless ``key`` is an option of this ``metastore``.

    Raise ``UnsupportedError`` for an option of Paimon catalogs.
    """
    for prefix, owner in ((_JDBC, SQL), (_HEADER, REST)):
        if key.startswith(prefix):
            _require_metastore(key, (owner,), metastore)
            return
    option = _BY_KEY.get(key)
    if option is None and (key.startswith(_PAIMON_PREFIXES) or key in _PAIMON):
        raise UnsupportedError(
            f"option {key!r} belongs to catalogs of Paimon tables, and has no meaning in a catalog "
            "of Iceberg tables: leave it out"
        )
    if option is None and key in _OF_OTHER_CLIENTS:
        raise InvalidRequestError(
            f"option {key!r} belongs to Iceberg's own clients: leave it out, and set option "
            f"{_OF_OTHER_CLIENTS[key]!r} to one of {', '.join(METASTORES)} (`lake --metastore`)"
        )
    if option is None:
        near = closest(key, [*_BY_KEY, *(each.name for each in STORE_OPTIONS)])
        raise InvalidRequestError(
            f"a catalog of Iceberg tables has no option {key!r}: leave it out{near}"
        )
    _require_metastore(key, option.metastores, metastore)


def _require_metastore(key: str, owners: Sequence[str], metastore: str) -> None:
    if metastore not in owners:
        raise InvalidRequestError(
            f"option {key!r} needs the {' or '.join(owners)} metastore: leave the option out, or "
            "choose that metastore"
        )

# SPDX-License-Identifier: Apache-2.0
"""The REST metastore: a service with Iceberg's REST protocol."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import RESTError
from requests import PreparedRequest, RequestException, Response, Session

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.catalog_pointer import CatalogPointer
from lakeformat.catalog.iceberg.client import ClientMetastore, parts_of
from lakeformat.catalog.iceberg.client_failure import RedirectedError
from lakeformat.catalog.iceberg.metastore import Describe
from lakeformat.catalog.iceberg.missing_snapshots import misses_snapshots
from lakeformat.catalog.iceberg.options import WAREHOUSE, IcebergOptions
from lakeformat.catalog.iceberg.rest_answers import read_answer, read_published
from lakeformat.catalog.iceberg.rest_updates import commit_request, have_same_state
from lakeformat.catalog.names import TableName
from lakeformat.errors import (
    AccessDeniedError,
    CommitOutcomeUnknownError,
    LakeError,
    UnavailableError,
)
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import spec_to_json
from lakeformat.iceberg.schema import schema_to_json
from lakeformat.iceberg.sort_order import order_to_json
from lakeformat.types.sentence import sentence

__all__ = ["RestMetastore"]

_SECONDS = 60
"""The time limit in seconds for a connection, and for each part of an answer."""
_EXPIRED = (401, 419)
_CREDENTIAL, _TOKEN_URI = "credential", "oauth2-server-uri"
_TOKEN_PATH = "/v1/oauth/tokens"
_TABLES = "namespaces/{namespace}/tables"
_REGISTER = "namespaces/{namespace}/register"
_INVALID, _CONFLICT, _MISSING, _SEE_OTHER = 400, 409, 404, 303
_REFUSED = (400, 401, 403, 404, 405, 406, _CONFLICT, 410, 411, 413, 414, 415, 419, 422, 429, 431)
"""The statuses which mean that a commit was certainly not made. With any other error, such as 408
or 524 of a proxy, the service may have made it.
"""


class RestMetastore(ClientMetastore):
    """The databases and tables of a REST catalog."""

    def __init__(self, options: IcebergOptions, files: CatalogFiles, warehouse: str) -> None:
        super().__init__(options, files)
        self._warehouse = warehouse

    def _connect(self) -> RestCatalog:
        uri = self._options.uri
        given = {WAREHOUSE: self._warehouse, **self._options.client}
        if _CREDENTIAL in given:
            given.setdefault(_TOKEN_URI, uri.rstrip("/") + _TOKEN_PATH)
        return _Client("lake", **{**given, "uri": uri})

    def _find(self, client: RestCatalog, name: TableName, doing: str) -> Answer:
        # Only the name of the metadata file is needed, so the request asks for few snapshots.
        response = _send(client, "GET", _url(client, name), params={"snapshots": "refs"})
        self._failures.require_success(response, doing, f"table '{name}'")
        return read_answer(response, f"the answer of {self._failures.address} about table '{name}'")

    def nested_databases(self, database: str) -> list[str]:
        """Return the full names of the databases directly inside of ``database``.

        If the service refuses to list them, return none: not every service has nested databases.
        If it does not answer, raise ``UnavailableError``.
        """
        place = parts_of(database)

        def inside(client: RestCatalog) -> list[tuple[str, ...]]:
            try:
                return list(client.list_namespaces(place))
            except RESTError as error:
                if type(error) is not RESTError:
                    raise
                return []  # a status such as 405 or 406

        try:
            found = self._ask(f"list the databases in {database!r}", inside)
        except LakeError as error:
            if isinstance(error, AccessDeniedError) or not isinstance(error, UnavailableError):
                return []
            raise
        # Some services ignore the parent, and list all databases.
        return [".".join(each) for each in found if each[:-1] == place]

    def pointer(self, name: TableName) -> CatalogPointer:
        """Return the pointer that reads and publishes the metadata of a table through the
        service.
        """
        return CatalogPointer(self, name, self._files)

    def make_table(self, name: TableName, describe: Describe) -> bool:
        """Ask the service to create a table, at a location that the service chooses.

        Return False if the table exists.
        """
        doing, metadata = f"create table '{name}'", describe("")
        request = {
            "name": name.table,
            "schema": schema_to_json(metadata.schema),
            "partition-spec": spec_to_json(metadata.spec_of(metadata.default_spec_id)),
            "write-order": order_to_json(metadata.sort_orders[-1]),
            "properties": {
                **metadata.properties,
                "format-version": str(metadata.format_version),
            },
        }

        def create(client: RestCatalog) -> Response:
            place = client._encode_namespace_path(parts_of(name.database))
            return _send(client, "POST", client.url(_TABLES, namespace=place), json=request)

        response = self._ask(doing, create)
        if response.status_code == _CONFLICT:
            return False
        self._failures.require_success(response, doing, f"database {name.database!r}")
        return True

    def remove_table(
        self, name: TableName, *, purge: bool, known: LoadedMetadata | None = None
    ) -> None:
        """Ask the service to drop a table; with ``purge`` the service also deletes the files."""
        parameters = {"purgeRequested": str(purge).lower()}
        doing = f"drop table '{name}'"
        response = self._ask(
            doing, lambda client: _send(client, "DELETE", _url(client, name), params=parameters)
        )
        self._failures.require_success(response, doing, f"table '{name}'")

    def find_published(self, name: TableName) -> tuple[str, TableMetadata] | None:
        """Return the address and the content of a table's metadata, as the service answers.

        Return None if the table does not exist. The metadata file itself is not read.
        """
        doing, subject = f"find table '{name}'", f"table '{name}'"
        response = self._ask(doing, lambda client: _send(client, "GET", _url(client, name)))
        if response.status_code == _MISSING:
            return None
        self._failures.require_success(response, doing, subject)
        return read_published(response, f"the answer of {self._failures.address} about {subject}")

    def register(self, name: TableName, address: str, *, overwrite: bool = False) -> bool:
        """Ask the service to add a table whose metadata file has the URI ``address``.

        Return True if the service added it, and False if it refuses because the table exists.
        ``overwrite`` asks the service to replace an existing table.
        """
        doing = f"register table '{name}'"
        request: dict[str, Any] = {"name": name.table, "metadata-location": address}
        if overwrite:
            request["overwrite"] = True

        def add(client: RestCatalog) -> Response:
            place = client._encode_namespace_path(parts_of(name.database))
            return _send(client, "POST", client.url(_REGISTER, namespace=place), json=request)

        response = self._ask(doing, add)
        if response.status_code == _CONFLICT:
            return False
        self._failures.require_success(response, doing, f"database {name.database!r}")
        return True

    def send_changes(self, name: TableName, base: TableMetadata, changed: TableMetadata) -> bool:
        """Ask the service to change a table from ``base`` to ``changed``; return True if it did.

        Return False if the service no longer has the state ``base``. If the outcome is not known,
        ``CommitOutcomeUnknownError`` is raised.
        """
        doing = f"publish table '{name}'"
        request = {"identifier": _identifier(name), **commit_request(base, changed)}
        try:
            response = self._ask(
                doing, lambda client: _send(client, "POST", _url(client, name), json=request)
            )
        except AccessDeniedError:
            raise
        except UnavailableError as lost:
            raise _unknown(name, str(lost)) from None
        if _may_be_made(response):
            raise _unknown(name, f"status {response.status_code}, {response.reason}")
        if response.status_code == _CONFLICT:
            return False
        self._failures.require_success(response, doing, f"table '{name}'")
        return True

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Ask the service to rename a table."""
        doing = f"rename table '{old}'"
        request = {"source": _identifier(old), "destination": _identifier(new)}
        response = self._ask(
            doing,
            lambda client: _send(client, "POST", client.url("tables/rename"), json=request),
        )
        self._failures.require_success(response, doing, f"table '{old}'")

    def require_writable(self) -> None:
        """Do nothing: the service itself accepts or refuses each write."""

    def publish(
        self, name: TableName, current: Answer, base: LoadedMetadata, metadata: TableMetadata
    ) -> tuple[Answer, LoadedMetadata] | None:
        """Send the changes from ``base`` to ``metadata``; the service writes the metadata file.

        Return the address of the new file, and the published metadata. Return None if another
        writer was first. If the answer is lost and the commit is not found, raise
        ``CommitOutcomeUnknownError``.
        """
        doing = f"publish table '{name}'"
        request = {
            "identifier": _identifier(name),
            **commit_request(base.metadata, metadata),
        }

        def commit(client: RestCatalog) -> Response:
            return _send(client, "POST", _url(client, name), json=request)

        try:
            response = self._ask(doing, commit)
        except AccessDeniedError:
            raise
        except UnavailableError as lost:
            return self._find_published(name, base, metadata, str(lost))
        if self._is_conflict(response, name, current):
            return self._after_conflict(name, base, metadata)
        if _may_be_made(response):
            said = f"status {response.status_code}, {response.reason}"
            return self._find_published(name, base, metadata, said)
        self._failures.require_success(response, doing, f"table '{name}'")
        subject = f"the answer of {self._failures.address} to the commit of table '{name}'"
        try:
            address, published = read_published(response, subject)
            _, path = base.places.place(address)
        except LakeError as error:
            return self._find_published(name, base, metadata, str(error))
        if not _new_snapshots(base, metadata) <= _snapshot_ids(published):
            said = f"{subject} lacks the snapshot of this commit"
            return self._find_published(name, base, metadata, said)
        answer = Answer(address, current.storage_options)
        return answer, LoadedMetadata(base.places, published, path)

    def _is_conflict(self, response: Response, name: TableName, current: Answer) -> bool:
        """Return True if a commit was refused because another writer was first.

        Status 409 means such a conflict. Some services answer with status 400 instead if another
        writer has created a branch: the sequence number of the new snapshot is then too low. Status
        400 counts as a conflict only if the table has another metadata file than ``current``.
        """
        if response.status_code != _INVALID:
            return response.status_code == _CONFLICT
        with suppress(LakeError):
            return self.answer(name).metadata_file != current.metadata_file
        return False

    def _after_conflict(
        self, name: TableName, base: LoadedMetadata, metadata: TableMetadata
    ) -> tuple[Answer, LoadedMetadata] | None:
        """Return the current answer and metadata if a commit was published although the service
        reported a conflict; None if another writer was first.

        A proxy may have sent the request twice. Then the conflict is with this commit itself.
        """
        try:
            answer, now = self._current(name)
        except LakeError as error:
            raise _unknown(
                name,
                "the catalog reported a conflict, and it could not be checked if the commit was "
                f"published: {error}",
            ) from None
        if _has_commit(now, base, metadata):
            return answer, now
        if _new_snapshots(base, metadata) and misses_snapshots(now.metadata, base.metadata):
            raise _unknown(
                name,
                "the catalog reported a conflict, and snapshots that were published meanwhile have "
                "expired. The snapshot of this commit may be one of them.",
            )
        return None

    def _find_published(
        self, name: TableName, base: LoadedMetadata, metadata: TableMetadata, lost: str
    ) -> tuple[Answer, LoadedMetadata]:
        """Look for a commit whose answer was lost. Return the service's current answer and metadata
        if they contain the commit.

        Otherwise raise ``CommitOutcomeUnknownError``. Its message has the reason ``lost``.
        """
        with suppress(LakeError):
            answer, now = self._current(name)
            if _has_commit(now, base, metadata):
                return answer, now
        raise _unknown(name, lost) from None

    def _current(self, name: TableName) -> tuple[Answer, LoadedMetadata]:
        answer = self.answer(name)
        return answer, self._files.load(str(name), answer, None)


class _Client(RestCatalog):  # type: ignore[misc]  # read without its types
    """PyIceberg's client with a time limit for each request.

    A redirect that would send a POST or DELETE again as a GET is an error. The service would answer
    the GET with the unchanged state, as if the change had succeeded.
    """

    def _create_session(self) -> Session:
        session: Session = super()._create_session()
        send, rebuild_method = session.send, session.rebuild_method

        def send_in_time(request: Any, **settings: Any) -> Response:
            return send(request, **{**settings, "timeout": settings.get("timeout") or _SECONDS})

        def keep_method(prepared_request: PreparedRequest, response: Response) -> None:
            sent, place = prepared_request.method, str(prepared_request.url).partition("?")[0]
            rebuild_method(prepared_request, response)
            if prepared_request.method != sent:
                # After 303 the change may have been made: its outcome is unknown.
                kind = RequestException if response.status_code == _SEE_OTHER else RedirectedError
                raise kind(f"status {response.status_code}, a redirect of {sent} to {place}")

        session.send = send_in_time  # type: ignore[method-assign]
        session.rebuild_method = keep_method  # type: ignore[method-assign]
        return session


def _may_be_made(response: Response) -> bool:
    """Return True if the commit may have been made although the answer is an error."""
    return response.status_code >= 300 and response.status_code not in _REFUSED


def _unknown(name: TableName, lost: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"it is not known if the commit of table '{name}' was published: {sentence(lost)} If you "
        "committed with a CommitId, just retry: the change is published once. If not, look for the "
        "change in the table before you retry. No file was removed"
    )


def _has_commit(now: LoadedMetadata, base: LoadedMetadata, metadata: TableMetadata) -> bool:
    """Return True if ``now`` contains the commit that changes ``base`` to ``metadata``.

    Each new snapshot of the commit must be in ``now``, or be the parent of a snapshot in ``now``,
    because it may have expired. A commit without new snapshots is found if ``now`` is another file
    than ``base`` and has the state of ``metadata``. If such a commit creates a branch or tag,
    return False, because another writer may have created the same one.
    """
    mine = _new_snapshots(base, metadata)
    if not mine:
        creates = metadata.references.keys() - base.metadata.references.keys()
        is_new = now.path != base.path
        return is_new and not creates and have_same_state(now.metadata, metadata)
    parents = {each.parent_id for each in now.metadata.snapshots}
    return mine <= _snapshot_ids(now.metadata) | parents


def _new_snapshots(base: LoadedMetadata, metadata: TableMetadata) -> set[int]:
    return _snapshot_ids(metadata) - _snapshot_ids(base.metadata)


def _snapshot_ids(metadata: TableMetadata) -> set[int]:
    return {each.snapshot_id for each in metadata.snapshots}


def _identifier(name: TableName) -> dict[str, Any]:
    return {"namespace": parts_of(name.database), "name": name.table}


def _url(client: RestCatalog, name: TableName) -> str:
    place = client._split_identifier_for_path((*parts_of(name.database), name.table))
    url: str = client.url(f"{_TABLES}/{{table}}", **place)
    return url


def _send(client: RestCatalog, method: str, url: str, **settings: Any) -> Response:
    session: Session = client._session
    response = session.request(method, url, **settings)
    if response.status_code in _EXPIRED:
        client._refresh_token()
        response = session.request(method, url, **settings)
    return response

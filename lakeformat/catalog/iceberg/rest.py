# SPDX-License-Identifier: Apache-2.0
"""The REST metastore: a service of Iceberg's open REST specification."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from requests import Response, Session

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.client import ClientMetastore, parts_of
from lakeformat.catalog.iceberg.options import WAREHOUSE, IcebergOptions
from lakeformat.catalog.iceberg.rest_answers import read_answer
from lakeformat.catalog.names import TableName

__all__ = ["RestMetastore"]

_SECONDS = 60
"""The longest time that the service may take to connect, or to send the next part of an answer."""
_EXPIRED = (401, 419)
_CREDENTIAL, _TOKEN_URI = "credential", "oauth2-server-uri"
_TOKEN_PATH = "/v1/oauth/tokens"
_TABLE_PATH = "namespaces/{namespace}/tables/{table}"


class RestMetastore(ClientMetastore):
    """Databases and tables of a REST catalog."""

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
        place = client._split_identifier_for_path((*parts_of(name.database), name.table))
        # The metadata in the answer is not read, so it may be short.
        response = _send(
            client, "GET", client.url(_TABLE_PATH, **place), params={"snapshots": "refs"}
        )
        self._failures.require_success(response, doing, f"table '{name}'")
        return read_answer(response, f"{self._options.uri}: the answer about table '{name}'")


class _Client(RestCatalog):  # type: ignore[misc]  # read without its types
    """PyIceberg's client, with a time limit for each request."""

    def _create_session(self) -> Session:
        session: Session = super()._create_session()
        send = session.send

        def send_in_time(request: Any, **settings: Any) -> Response:
            return send(request, **{**settings, "timeout": settings.get("timeout") or _SECONDS})

        session.send = send_in_time  # type: ignore[method-assign]
        return session


def _send(client: RestCatalog, method: str, url: str, **settings: Any) -> Response:
    """Send a request; once more with a new token if the token has expired."""
    session: Session = client._session
    response = session.request(method, url, **settings)
    if response.status_code in _EXPIRED:
        client._refresh_token()
        response = session.request(method, url, **settings)
    return response

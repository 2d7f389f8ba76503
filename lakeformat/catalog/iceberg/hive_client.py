# SPDX-License-Identifier: Apache-2.0
"""PyIceberg's client of a Hive metastore, with a time limit for each request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from urllib.parse import urlparse

from pyiceberg.catalog.hive import (
    HIVE_KERBEROS_AUTH,
    HIVE_KERBEROS_SERVICE_NAME,
    HIVE_KERBEROS_SERVICE_NAME_DEFAULT,
    HiveCatalog,
    _HiveClient,
)
from pyiceberg.utils.properties import property_as_bool
from thrift.transport import TSocket, TTransport

from lakeformat.catalog.iceberg.options import HIVE_TIMEOUT
from lakeformat.errors import InvalidRequestError

__all__ = ["HiveClient", "timeout_seconds"]

_SECONDS = 60.0


class HiveClient(HiveCatalog):  # type: ignore[misc]  # read without its types
    """PyIceberg's client, whose connections have the time limit of ``hive.timeout-seconds``."""

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _Connection(properties)


class _Connection(_HiveClient):  # type: ignore[misc]  # read without its types
    """A Thrift connection with a time limit; PyIceberg's own has none."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._millis = 1000 * timeout_seconds(properties)
        super().__init__(
            properties["uri"].partition(",")[0],
            properties.get("ugi"),
            property_as_bool(properties, HIVE_KERBEROS_AUTH, False),
            properties.get(HIVE_KERBEROS_SERVICE_NAME, HIVE_KERBEROS_SERVICE_NAME_DEFAULT),
        )

    def _init_thrift_transport(self) -> TTransport.TTransportBase:
        place = urlparse(self._uri)
        socket = TSocket.TSocket(place.hostname, place.port)
        socket.setTimeout(self._millis)
        if not self._kerberos_auth:
            return TTransport.TBufferedTransport(socket)
        service = self._kerberos_service_name
        return TTransport.TSaslClientTransport(socket, host=place.hostname, service=service)


def timeout_seconds(properties: Mapping[str, str]) -> float:
    """Return the time limit of a request, in seconds: option ``hive.timeout-seconds``, default 60.

    The limit holds for connecting and for each read from the socket. A value that is not a number
    above 0 raises ``InvalidRequestError``.
    """
    given = properties.get(HIVE_TIMEOUT)
    if given is None:
        return _SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidRequestError(
            f"option '{HIVE_TIMEOUT}' must be a number of seconds above 0, such as 60, got "
            f"{given!r}"
        )
    return seconds

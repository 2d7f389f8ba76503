# SPDX-License-Identifier: Apache-2.0
"""One bucket and its client (obstore, loaded when the first bucket is opened)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from lakeformat.errors import InvalidRequestError, UnavailableError, UnsupportedError
from lakeformat.storage.object_address import ObjectAddress
from lakeformat.storage.object_errors import translated
from lakeformat.storage.store_options import StoreConfig

__all__ = ["ObjectClient", "open_client"]

_RETRY_SECONDS, _LONGEST_PAUSE_SECONDS, _REQUEST_SECONDS = 60, 15, 30
_PAUSES = {
    "init_backoff": timedelta(seconds=0.1),
    "max_backoff": timedelta(seconds=_LONGEST_PAUSE_SECONDS),
    "base": 2,
}
_RETRIES = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
    "backoff": _PAUSES,
}
# A repeated conditional write is refused because of its own first attempt. So a caller that must
# know the winner sends it once, and reads the file back.
_ONCE = {**_RETRIES, "max_retries": 0}


class _ForkCheck:
    """Detects that this process was forked after its parent had used an object store."""

    are_watched = False
    is_child = False

    @classmethod
    def watch(cls) -> None:
        if not cls.are_watched:
            cls.are_watched = True
            os.register_at_fork(after_in_child=lambda: setattr(cls, "is_child", True))


@dataclass(frozen=True)
class ObjectClient:
    """A client that sends requests to one bucket: with retries (``patient``), or exactly once
    (``once``).
    """

    address: ObjectAddress
    endpoint: str
    """The endpoint, "" for the provider's default; for Azure also the account, after a space."""
    patient: Any = field(repr=False)
    once: Any = field(repr=False)
    api: ModuleType = field(repr=False)
    config: StoreConfig

    @property
    def identity(self) -> str:
        """A text that is equal for all clients of one bucket, and differs between buckets."""
        return f"{self.address.kind} {self.endpoint} {self.address.bucket}"

    @property
    def longest_request_seconds(self) -> float:
        """The longest time in seconds from a small request to its last answer, with retries.

        Right before the time limit for retries, the client may begin one more pause, and then send
        a last request.
        """
        return _RETRY_SECONDS + _LONGEST_PAUSE_SECONDS + _request_seconds(self.config)

    def uri(self, path: str) -> str:
        return self.address.uri(path)

    def asking(self, operation: str, path: str) -> AbstractContextManager[None]:
        """Translate the errors of the requests in a with block into ``LakeError``.

        ``operation`` and ``path`` name the requests in messages. In a forked process, where the
        client's threads do not run, ``UnavailableError`` is raised.
        """
        _ForkCheck.watch()
        if _ForkCheck.is_child:
            # The client's threads do not survive a fork: a request would never end.
            raise UnavailableError(
                f"Cannot {operation} {self.uri(path)}: this process was forked from a process "
                "that already used an object store. Start this process with spawn, or as a new "
                "program."
            )
        return translated(operation, self.uri(path), self.config.secrets)


def open_client(address: ObjectAddress, config: StoreConfig) -> ObjectClient:
    """Return a client with the given options; the environment supplies missing options.

    Raise ``UnsupportedError`` if obstore is not installed, and ``InvalidRequestError`` for options
    that contradict each other or the address.
    """
    api = _load(address)
    values = dict(config.values)
    http: dict[str, Any] = {"timeout": timedelta(seconds=_request_seconds(config))}
    extra: dict[str, Any] = {"client_options": http}
    values.pop("timeout", None)
    values.pop("single_writer", None)
    credentials = _static_credentials(values)
    endpoint, settings = _settings(address, values)
    extra["config"] = settings
    if endpoint.startswith("http://"):
        http["allow_http"] = True
    if credentials is not None:
        extra["credential_provider"] = credentials
    make = {"s3": api.store.S3Store, "gs": api.store.GCSStore, "azure": api.store.AzureStore}
    with translated("open", address.uri(""), config.secrets):
        patient, once = (
            make[address.kind](address.bucket, retry_config=retries, **extra)
            for retries in (_RETRIES, _ONCE)
        )
    return ObjectClient(address, endpoint, patient, once, api, config)


def _request_seconds(config: StoreConfig) -> float:
    return float(str(config.values.get("timeout", _REQUEST_SECONDS)))


def _load(address: ObjectAddress) -> ModuleType:
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        raise UnsupportedError(
            f"{address.uri('')} needs obstore: pip install 'airflow-provider-lake[s3]'"
        ) from error
    return obstore


def _settings(
    address: ObjectAddress, values: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Return the endpoint of the store, and the configuration of its client.

    Raise ``InvalidRequestError`` if the Azure account is missing, or if the address and the options
    name different accounts.
    """
    settings = dict(values)
    if address.kind == "gs":
        return str(settings.get("base_url", os.environ.get("GOOGLE_BASE_URL", ""))), settings
    if address.kind == "azure":
        account = settings.setdefault("account_name", address.account or _environment_account())
        if not account:
            raise InvalidRequestError(
                f"{address.uri('')} names no storage account: set azure.account, or write"
                " abfss://container@account.dfs.core.windows.net/path."
            )
        if address.account and account != address.account:
            raise InvalidRequestError(
                f"{address.uri('')} names another account than azure.account ({account}): correct "
                "the address or azure.account."
            )
        return f"{settings.get('endpoint', '')} {account}".strip(), settings
    return _s3_settings(address, settings)


def _s3_settings(
    address: ObjectAddress, settings: dict[str, object]
) -> tuple[str, dict[str, object]]:
    endpoint = str(settings.get("endpoint", ""))
    path_style = settings.pop("path_style", True)
    if not path_style:
        settings["virtual_hosted_style_request"] = True
        if endpoint:
            parts = urlsplit(endpoint)
            # The client expects the address of the bucket here, not that of the store.
            settings["endpoint"] = f"{parts.scheme}://{address.bucket}.{parts.netloc}{parts.path}"
    if endpoint:
        # Set here, or an endpoint of the environment would override the option.
        settings["aws_endpoint_url_s3"] = settings["endpoint"]
    else:
        names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
        endpoint = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return endpoint, settings


def _static_credentials(values: dict[str, object]) -> Callable[[], dict[str, object]] | None:
    """Return a function that returns the S3 credentials in the options; None if there are none.

    The credentials are removed from ``values``. Raise ``InvalidRequestError`` for credentials
    without the access key or the secret key: the client would take the missing key from the
    environment.
    """
    names = ("access_key_id", "secret_access_key", "session_token")
    key, secret, token = (values.pop(name, None) for name in names)
    if key is None and secret is None and token is None:
        return None
    if key is None or secret is None:
        raise InvalidRequestError(
            "s3.access-key and s3.secret-key must be set together; s3.session.token needs both."
        )
    found = {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}
    return lambda: found


def _environment_account() -> str | None:
    return os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")

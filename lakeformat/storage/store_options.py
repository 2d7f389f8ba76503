# SPDX-License-Identifier: Apache-2.0
"""The options of object stores, with the names that they have in Paimon catalogs.

``s3a.`` and ``fs.s3a.`` are read as ``s3.``, as Paimon does. An unknown option raises
``InvalidRequestError``: if a misspelt ``s3.endpoint`` was ignored, AWS would get the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.shown import holds_key_material

__all__ = [
    "STORE_OPTIONS",
    "StoreConfig",
    "StoreOption",
    "is_storage_option",
    "option_name",
    "store_config",
]

SINGLE_WRITER = "unsafe.single-writer"

_PREFIXES = {
    "fs.s3a.": "s3.",
    "s3a.": "s3.",
    "fs.gs.": "gs.",
    "fs.azure.": "azure.",
    "s3.": "s3.",
    "gs.": "gs.",
    "azure.": "azure.",
    "unsafe.": "unsafe.",
}
_AZURE_ACCOUNT_KEY = re.compile(r"azure\.account\.key\.([a-z0-9]+)(\.(blob|dfs)\.[a-z0-9.]+)?")


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def _switch(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.strip().lower() == "true"


def _address(text: str) -> str:
    """Return the address of an endpoint; a missing scheme becomes https, as in Hadoop.

    Raise ``ValueError`` if the text is not an address.
    """
    address = text.strip().rstrip("/")
    if "://" not in address:
        address = f"https://{address}"
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", address):
        raise ValueError("it must be an address such as https://s3.example.org:9000")
    return address


def _key_file(text: str) -> str:
    """Return the path of a key file.

    Raise ``ValueError``, without the text, if the text is the key itself.
    """
    if holds_key_material(text):
        raise ValueError(
            "it must be the path of a file, but is the key itself. Write the key to a file that"
            " only this user can read, and give its path"
        )
    return _text(text)


def _seconds(text: str) -> float:
    """Return a duration in seconds; a number without a unit is milliseconds, as in Hadoop.

    The units are ms, s and m. Raise ``ValueError`` for any other text, and for 0.
    """
    found = re.fullmatch(r"\s*(\d+)\s*(ms|s|m)?\s*", text)
    if found is None or int(found[1]) == 0:
        raise ValueError("it must be a duration above 0, such as 30s or 200000 (milliseconds)")
    return int(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[found[2] or "ms"]


@dataclass(frozen=True, slots=True)
class StoreOption:
    """One option: its names, the parser of its text, and its name in the client."""

    name: str
    key: str
    parse: Callable[[str], object] = _text
    is_secret: bool = False
    synonyms: tuple[str, ...] = ()


STORE_OPTIONS = (
    StoreOption("s3.endpoint", "endpoint", _address),
    StoreOption("s3.access-key", "access_key_id", synonyms=("s3.access.key",)),
    StoreOption("s3.secret-key", "secret_access_key", _text, True, ("s3.secret.key",)),
    StoreOption("s3.session.token", "session_token", _text, True),
    StoreOption("s3.region", "region", synonyms=("s3.endpoint.region",)),
    StoreOption("s3.path.style.access", "path_style", _switch, synonyms=("s3.path-style-access",)),
    StoreOption("s3.connection.timeout", "timeout", _seconds),
    StoreOption("gs.endpoint", "base_url", _address),
    StoreOption(
        "gs.auth.service.account.json.keyfile",
        "application_credentials",
        _key_file,
        is_secret=True,
    ),
    StoreOption("gs.auth.access-token", "bearer_token", _text, True),
    StoreOption("azure.endpoint", "endpoint", _address),
    StoreOption("azure.account", "account_name"),
    StoreOption("azure.account-key", "account_key", _text, True),
    StoreOption("azure.sas-token", "sas_key", _text, True),
    StoreOption("azure.tenant-id", "tenant_id"),
    StoreOption("azure.client-id", "client_id"),
    StoreOption("azure.client-secret", "client_secret", _text, True),
    StoreOption(SINGLE_WRITER, "single_writer", _switch),
)
_BY_NAME = {name: option for option in STORE_OPTIONS for name in (option.name, *option.synonyms)}


@dataclass(frozen=True)
class StoreConfig:
    """The checked options of one kind of store. The repr shows no value, because some are
    secrets.
    """

    values: Mapping[str, object]
    """The values of the options, by the names that the client uses."""
    secrets: tuple[str, ...]

    @property
    def is_single_writer(self) -> bool:
        """True if the option ``unsafe.single-writer`` states that no other process writes."""
        return self.values.get("single_writer") is True

    def __repr__(self) -> str:
        return f"StoreConfig({', '.join(sorted(self.values))})"


def is_storage_option(name: str) -> bool:
    """Return True if an option belongs to the storage, not to the catalog or its tables.

    Only the prefix counts, such as ``s3.``: the rest of the name may be unknown.
    """
    return name.startswith(tuple(_PREFIXES))


def option_name(given: str) -> str:
    """Return the name of an option for one of its synonyms. Any other text is returned
    unchanged.
    """
    option = _BY_NAME.get(_normal(given))
    return given if option is None else option.name


_ADDRESSES = {"s3": "s3:// and s3a://", "azure": "abfss://, abfs:// and az://"}


def store_config(options: Mapping[str, str], kind: str) -> StoreConfig:
    """Return the checked options of one kind of store.

    ``kind`` is ``s3``, ``gs`` or ``azure``, or a scheme whose only option is
    ``unsafe.single-writer``. An unknown option, an option of another kind, and a wrong value raise
    ``InvalidRequestError``.
    """
    values: dict[str, object] = {}
    givers: dict[str, str] = {}
    secrets = []
    for given, text in options.items():
        option, text = _declared(given, text, values)
        if not option.name.startswith((f"{kind}.", "unsafe.")):
            raise InvalidRequestError(
                f"{given} does not apply to {_ADDRESSES.get(kind, f'{kind}://')} addresses: remove "
                "it, or correct the address."
            )
        value = _parsed(option, given, text)
        if option.key in givers:
            raise InvalidRequestError(
                f"{givers[option.key]} and {given} are two names of one option: keep one of them."
            )
        givers[option.key] = given
        values[option.key] = value
        if option.is_secret:
            secrets.append(str(value))
    return StoreConfig(values, tuple(secrets))


def _declared(given: str, text: str, values: dict[str, object]) -> tuple[StoreOption, str]:
    name = _normal(given)
    account = _AZURE_ACCOUNT_KEY.fullmatch(name)
    if account is not None:
        # Hadoop puts the account into the name of the option.
        values.setdefault("account_name", account[1])
        return _BY_NAME["azure.account-key"], text
    option = _BY_NAME.get(name)
    if option is None:
        near = get_close_matches(name, _BY_NAME, n=1)
        advice = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(_BY_NAME))}."
        # A value in the name is not shown: it may be a secret.
        shown = re.sub("=.*", "=…", given, flags=re.DOTALL)
        raise InvalidRequestError(f"{shown} is not an option of a storage. {advice}")
    return option, text


def _normal(name: str) -> str:
    for prefix, normal in _PREFIXES.items():
        if name.startswith(prefix):
            return normal + name.removeprefix(prefix)
    return name


def _parsed(option: StoreOption, given: str, text: object) -> object:
    if isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str):
        raise InvalidRequestError(f"{given} must be text: write its value in quotes.")
    try:
        return option.parse(text)
    except ValueError as error:
        # Never print the value: a secret may be in the wrong option.
        raise InvalidRequestError(f"{given} has a wrong value: {error}.") from None

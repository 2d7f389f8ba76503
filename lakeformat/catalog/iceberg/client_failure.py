# SPDX-License-Identifier: Apache-2.0
"""Translates errors of PyIceberg's clients to errors of this library, without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import ValidationError
from pyiceberg import exceptions as theirs
from requests import PreparedRequest, RequestException, Response

from lakeformat.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.storage.shown import without_credentials

__all__ = ["Failures", "RedirectedError"]

_LONGEST = 300
_RETRY = "Check the address of the catalog, and retry once its service answers"
_ACCESS = "Check the token or the credential of the catalog, and what its user may do"


class RedirectedError(Exception):
    """A redirect would send a POST or DELETE again as a GET, which would change nothing."""


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[LakeError], str], ...] = (
    (
        (theirs.NoSuchTableError, theirs.NoSuchNamespaceError, theirs.NoSuchIdentifierError),
        NotFoundError,
        "Check the name",
    ),
    (
        theirs.NamespaceNotEmptyError,
        InvalidRequestError,
        "Drop its tables, views and nested databases first",
    ),
    (
        (
            theirs.AuthorizationExpiredError,
            theirs.ForbiddenError,
            theirs.OAuthError,
            theirs.UnauthorizedError,
        ),
        AccessDeniedError,
        _ACCESS,
    ),
    (
        (theirs.ServerError, theirs.ServiceUnavailableError, theirs.TooManyRequestsError),
        UnavailableError,
        _RETRY,
    ),
    (NotImplementedError, UnsupportedError, "Ask the operators of the catalog to support this"),
    (
        RedirectedError,
        InvalidRequestError,
        "Nothing was changed. Set the catalog's option 'uri' to the new address of the service",
    ),
    (theirs.BadRequestError, InvalidRequestError, "Check the name and the options of the catalog"),
    (theirs.RESTError, UnavailableError, _RETRY),
    ((RequestException, OSError), UnavailableError, _RETRY),
    (
        ValueError,
        InvalidRequestError,
        "Check the options of the catalog, and those that its service adds",
    ),
)
_REFUSED = "Nothing was changed. Correct what the service refuses, such as a name or a comment"
_REFUSALS = ("InvalidInputException", "ValidationException")
"""The error codes of AWS for a request with content that the service does not accept."""
_OF_SERVICES = ("botocore", "hive_metastore", "thrift")
"""Packages, perhaps not installed, whose errors mean that the service failed or was not reached."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Translates the errors of one service."""

    uri: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def address(self) -> str:
        """The URI of the service, without credentials."""
        return self._shown(self.uri)

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Return a context manager that translates the known errors of a client into ``LakeError``.

        If the server does not answer like a REST catalog, ``CorruptTableError`` is raised.
        ``doing`` completes the message "cannot ... in <address>", such as "create table 'a.b'".
        """
        try:
            yield
        except LakeError:
            raise
        # "from None", because a traceback would show the client's error, which may quote a secret.
        except ValidationError:
            raise CorruptTableError(
                f"cannot {doing} in {self.address}: the server does not answer like "
                "a REST catalog. Check the uri"
            ) from None
        except Exception as error:
            for kind, ours, remedy in _KINDS:
                if isinstance(error, kind):
                    raise ours(self._message(doing, _reason(error), remedy)) from None
            if _is_refused(error):
                raise InvalidRequestError(self._message(doing, _reason(error), _REFUSED)) from None
            if type(error).__module__.partition(".")[0] in _OF_SERVICES:
                raise UnavailableError(self._message(doing, _reason(error), _RETRY)) from None
            raise

    def require_success(self, response: Response, doing: str, subject: str) -> None:
        """Raise the ``LakeError`` that belongs to the status of a response; below 300 do nothing.

        Status 404 raises ``NotFoundError`` for ``subject``, a table or database. 401, 403 and 419
        raise ``AccessDeniedError``; 429 and all from 500 on raise ``UnavailableError``. Every other
        status raises ``InvalidRequestError``. ``doing`` completes the message "cannot ... in
        <address>".
        """
        status = response.status_code
        if status < 300:
            return
        said = _said(response)
        if status == 404:
            raise NotFoundError(f"{subject} does not exist in {self.address}: {self._shown(said)}")
        if status in (401, 403, 419):
            raise AccessDeniedError(self._message(doing, said, _ACCESS))
        if status == 429 or status >= 500:
            raise UnavailableError(self._message(doing, said, _RETRY))
        raise InvalidRequestError(
            self._message(doing, said, "Check the name and the options of the catalog")
        )

    def _message(self, doing: str, said: str, remedy: str) -> str:
        reason = self._shown(said)[:_LONGEST].rstrip(". ")
        return f"cannot {doing} in {self.address}: {reason}. {remedy}"

    def _shown(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return without_credentials(" ".join(text.split()))


def _is_refused(error: Exception) -> bool:
    """Return True if AWS refused the content of a request.

    Return False if the client sent the request more than once: an earlier attempt may have
    succeeded.
    """
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict) or answer.get("Error", {}).get("Code") not in _REFUSALS:
        return False
    return bool(answer.get("ResponseMetadata", {}).get("RetryAttempts") == 0)


def _reason(error: Exception) -> str:
    text = str(error)
    if text in ("", "None"):
        return type(error).__name__
    return _without_login(text, getattr(error.__cause__, "request", None))


def _without_login(text: str, request: PreparedRequest | None) -> str:
    """Return ``text`` with ``***`` for the token of ``request``, which some services quote."""
    sent = "" if request is None else request.headers.get("Authorization", "")
    login = str(sent).partition(" ")[2]
    return text.replace(login, "***") if login else text


def _said(response: Response) -> str:
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.reason
    return _without_login(f"status {response.status_code}, {message}", response.request)

# SPDX-License-Identifier: Apache-2.0
"""Translates the errors of an object store into errors of this library.

The client's messages contain whole requests: a signed address in a log would give every reader
access to the store. So only the status, the error code and the store's explanation are kept, and
the client's exception is not chained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from lakeformat.errors import (
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["is_missing", "is_taken", "is_unknown_upload", "status_of", "translated"]

_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_ADDRESS = re.compile(r"https?://\S+")
_UNREADABLE = re.compile(r'Encountered object with invalid path: .*?Path "(.*?)"', re.DOTALL)
_KEY_FILE = re.compile(r"service account file|Error reading pem file|OpenCredentials")
_ACCESS = "Check the credentials, and their permission to read and write this path."
_OTHER_STORE = " Without the option s3.endpoint, AWS gets the request."
_PLACE = "Check the region and the endpoint."
_ACCESS_OR_PLACE = "Check the credentials (a token may have expired), the region and the endpoint."
_REMEDIES = {
    301: _PLACE,
    400: _PLACE,
    401: _ACCESS,
    403: _ACCESS,
    429: "The store limits the rate of requests: retry later.",
    503: "The store limits the rate of requests: retry later.",
}
_ACCESS_CODES = ("ExpiredToken", "InvalidToken", "InvalidAccessKeyId")
_RETRY = "Check the endpoint and retry once the store answers."


@contextmanager
def translated(operation: str, uri: str, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Raise a ``LakeError``, which names the operation and the address, for any error of the
    client in a with block.

    Each of ``secrets`` is replaced by ``***`` in the message, even if it is percent-encoded.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise _translate(operation, uri, error, secrets) from None


def is_missing(error: Exception) -> bool:
    """Return True if the error reports a missing object; False for a missing bucket."""
    return isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error)


def is_taken(error: Exception) -> bool:
    """Return True if the store refused a write because the object exists.

    On S3 also return True if another request is writing the object.
    """
    return type(error).__name__ in ("AlreadyExistsError", "NotModifiedError", "PreconditionError")


def is_unknown_upload(error: Exception) -> bool:
    """Return True if the store does not know a multipart upload: it is completed or aborted."""
    return isinstance(error, FileNotFoundError) and "NoSuchUpload" in str(error)


def status_of(error: Exception) -> int | None:
    """Return the HTTP status in the error; None if the store did not answer."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def _translate(operation: str, uri: str, error: Exception, secrets: tuple[str, ...]) -> LakeError:
    text, status = str(error), status_of(error)
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return NotFoundError(
            f"Cannot {operation} {uri}: its bucket does not exist."
            " Create the bucket, or correct the address."
        )
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"Cannot {operation} {uri}: no such file. Check the path.")
    if unreadable := _UNREADABLE.search(text):
        return InvalidRequestError(
            f"Cannot {operation} {uri}: this client cannot read the name {unreadable[1]!r} of an"
            " object there. The name has an empty part, the part . or .., or a control character."
            " Delete or rename the object with the store's own tool."
        )
    if _KEY_FILE.search(text):
        return InvalidRequestError(
            f"Cannot {operation} {uri}: the key file of the service account does not exist, or"
            " has no valid key. The path is not shown, because it may be the key itself, set by"
            " mistake. Correct gs.auth.service.account.json.keyfile; if this option is not set,"
            " correct GOOGLE_APPLICATION_CREDENTIALS."
        )
    for secret in secrets:
        for form in (secret, quote(secret), quote(secret, safe="")):
            text = text.replace(form, "***")
    reason = _reason(text)
    if status == 501:
        return UnsupportedError(
            f"Cannot {operation} {uri}: {reason}. The store does not support this request: update "
            "the store, or use another one."
        )
    if status is None and isinstance(error, ValueError):
        return InvalidRequestError(
            f"Cannot {operation} {uri}: the object store's client refuses this name. Choose "
            "another name."
        )
    remedy = _remedy(status, _element("Code", text))
    if remedy is _ACCESS and uri.startswith("s3:"):
        remedy += _OTHER_STORE
    return UnavailableError(f"Cannot {operation} {uri}: {reason}. {remedy}")


def _remedy(status: int | None, code: str) -> str:
    if code in _ACCESS_CODES:
        return _ACCESS
    if status == 400 and not code:
        return _ACCESS_OR_PLACE  # the answer to a HEAD request never has a code
    return _REMEDIES.get(status or 0, _RETRY)


def _reason(text: str) -> str:
    found = _STATUS.search(text)
    if found:
        code, message = _element("Code", text), _element("Message", text)
        words = [f"{found[1]}{found[2].rstrip()}", code, message.rstrip(".")]
        return ": ".join(word for word in words if word)
    if "TimedOut" in text or "timed out" in text:
        return "the request timed out"
    if "ConnectionRefused" in text:
        return "connection refused"
    first, *_ = text.split("\n")
    return _ADDRESS.sub("…", first)[:300].rstrip(". ")


def _element(name: str, text: str) -> str:
    found = re.search(f"<{name}>([^<]*)</{name}>", text)
    # Only the first line: some stores repeat the request below it.
    return found[1].strip().split("\n")[0][:200] if found else ""

"""The errors of an object store's client, translated into errors of this library."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError, InvalidPathError

from lakeformat.errors import InvalidRequestError, UnavailableError
from lakeformat.storage.object_errors import translated

TOKEN = "IQoJb3Jp/VjE+abc=="


def answer(status: str, code: str, message: str) -> GenericError:
    """Return the client's error for an answer of the store."""
    return GenericError(
        "Generic S3 error: Error performing GET http://127.0.0.1:1/lake?list-type=2 in 2ms -"
        f" Server returned non-2xx status code: {status}: <Error><Code>{code}</Code>"
        f"<Message>{message}</Message></Error>"
    )


@pytest.mark.parametrize("shown", [TOKEN, "IQoJb3Jp%2FVjE%2Babc%3D%3D", "IQoJb3Jp/VjE%2Babc%3D%3D"])
def test_a_secret_is_masked_in_each_of_its_forms(shown):
    refused = pytest.raises(UnavailableError, match=r"It was \*\*\*\.")
    with refused as caught, translated("list", "s3://lake/wh", (TOKEN,)):
        raise answer("403 Forbidden", "AccessDenied", f"It was {shown}.")
    assert "IQoJ" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        ("400 Bad Request", "ExpiredToken", r"Check the credentials, and"),
        ("400 Bad Request", "InvalidToken", r"Check the credentials, and"),
        ("403 Forbidden", "InvalidAccessKeyId", r"Check the credentials, and"),
        ("400 Bad Request", "AuthorizationHeaderMalformed", r"Check the region and the endpoint"),
        ("400 Bad Request", "", r"Check the credentials \(a token may have expired\), the region"),
        ("301 Moved Permanently", "", r"Check the region and the endpoint"),
    ],
)
def test_the_advice_matches_the_code_of_the_store(status, code, advice):
    refused = pytest.raises(UnavailableError, match=advice)
    with refused, translated("list", "s3://lake/wh"):
        raise answer(status, code, "No.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wh/t//stray", 'Path "wh/t//stray" contained empty path segment'),
        ("wh/./x", 'Error parsing Path "wh/./x": Encountered illegal character sequence "."'),
        ("wh/a\nb", 'Error parsing Path "wh/a\nb": Encountered illegal character sequence "\n"'),
    ],
)
def test_an_object_with_an_unreadable_name_is_named(name, reason):
    refused = pytest.raises(InvalidRequestError, match=r"Delete or rename the object with")
    with refused as caught, translated("list", "s3://lake/wh"):
        raise InvalidPathError(f"Encountered object with invalid path: {reason}\n\nDebug source:")
    assert f"cannot read the name {name!r}" in str(caught.value)

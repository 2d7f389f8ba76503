# SPDX-License-Identifier: Apache-2.0
"""Checks arguments that must be a mapping or a list of str."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakeformat.errors import InvalidRequestError

__all__ = ["require_keys", "require_mapping", "require_options", "require_texts"]


def require_mapping(what: str, given: object) -> dict[str, str]:
    """Return a copy of a mapping; empty for None. Any other value raises ``InvalidRequestError``.

    ``what`` is the name of the argument, for the message. Keys and values are not checked.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        # The value is not shown: it may be an option with a secret.
        raise InvalidRequestError(f"{what} must map str to str, got {type(given).__name__}")
    return dict(given)


def require_options(given: object) -> dict[str, str]:
    """Return a copy of the options of a catalog or a storage; empty for None.

    A name with an equals sign raises ``InvalidRequestError``. Its message leaves out the text after
    the sign, which may be a secret.
    """
    said = require_mapping("options", given)
    for key in said:
        name, sign, _ = str(key).partition("=")
        if sign and not name.startswith("table-default."):
            raise InvalidRequestError(
                f"option {name + '=…'!r} has its value in its name: give the name and the value"
                f" separately, as in {{{name!r}: '…'}}"
            )
    return said


def require_texts(what: str, given: object) -> dict[str, str]:
    """Return a copy of a mapping from str to str; empty for None.

    A key or value that is not a str, that has a null character, or that cannot be encoded as UTF-8
    raises ``InvalidRequestError``. ``what`` is the name of the argument, for the message.
    """
    said = require_mapping(what, given)
    for key, value in said.items():
        _require_text(f"a key of {what}", key)
        _require_text(f"{what}[{key!r}]", value)
    return said


def require_keys(what: str, given: object) -> list[str]:
    """Return the keys in ``given`` as a list of str; ``what`` is the name of the argument, for the
    message.

    ``InvalidRequestError`` is raised for a single str, which would be read as a list of letters,
    and for a key that ``require_texts`` would refuse.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidRequestError(
            f"{what} must be a list of keys, such as ['owner'], got {given!r}"
        )
    keys = [*given]
    for key in keys:
        _require_text(f"a key of {what}", key)
    return keys


def _require_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidRequestError(f"{what} must be a str, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"{what} holds half of a surrogate pair, which is not valid text: {text!r}. Correct it"
        ) from None
    if "\0" in text:
        raise InvalidRequestError(f"{what} holds a null character: {text!r}. Remove it")

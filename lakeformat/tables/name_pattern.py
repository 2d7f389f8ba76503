# SPDX-License-Identifier: Apache-2.0
"""Regular expressions in arguments, which choose tables or consumers by their whole names."""

from __future__ import annotations

import re

from lakeformat.errors import InvalidRequestError

__all__ = ["name_pattern"]


def name_pattern(argument: str, text: str) -> re.Pattern[str]:
    """Return the compiled regular expression.

    An invalid expression raises ``InvalidRequestError``, which names ``argument``.
    """
    if not isinstance(text, str):
        raise InvalidRequestError(
            f"{argument} must be a regular expression as text, got {text!r}: write one "
            "such as 'job-.*'"
        )
    try:
        return re.compile(text)
    except re.error as reason:
        raise InvalidRequestError(
            f"{argument} must be a regular expression, got {text!r}: {reason}; write one such as "
            "'job-.*'"
        ) from None

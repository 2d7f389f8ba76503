# SPDX-License-Identifier: Apache-2.0
"""Finds the known name that is most similar to a wrong name, for error messages."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest"]


def closest(name: object, known: Iterable[str], *, inside: str = "") -> str:
    """Return the end of a message about an unknown name, such as ``; did you mean 'b'?``.

    The text suggests the most similar of the ``known`` names; it is empty if no name is similar.
    ``inside`` is put before the suggestion, for example a database with its dot.
    """
    from difflib import get_close_matches  # imported late: only messages need it

    folded = {each.casefold(): each for each in known}
    close = get_close_matches(str(name).casefold(), folded, n=1)
    return f"; did you mean '{inside}{folded[close[0]]}'?" if close else ""

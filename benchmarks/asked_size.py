# SPDX-License-Identifier: Apache-2.0
"""The command line of a benchmark whose only argument is a size, such as a number of rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

__all__ = ["asked_size"]


def asked_size(
    description: str | None, name: str, default: int, arguments: Sequence[str] | None = None
) -> int:
    """Return the size in ``arguments``, or ``default``.

    ``arguments=None`` means the arguments of this process. ``name`` is the name of the size in the
    help.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "size", nargs="?", type=int, default=default, metavar=name, help=f"default: {default}"
    )
    return int(parser.parse_args(arguments).size)

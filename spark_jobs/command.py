"""The command line every job shares: a request in, one marked line of JSON out."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["REPORT_MARKER", "run_command"]

REPORT_MARKER = "LAKE_REPORT "
"""What the line with the report begins with, on standard output."""

DONE = 0
FAILED = 1
INVALID_REQUEST = 2


def run_command(
    name: str, run: Callable[[Mapping[str, Any]], dict[str, Any]], arguments: list[str] | None
) -> int:
    """Run a job from words: 0 done, 2 the request is wrong, 1 anything else went wrong."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument(
        "--request", required=True, metavar="JSON|PATH", help="a JSON object, or a file with one"
    )
    given = parser.parse_args(arguments).request
    try:
        report = run(_parse(given))
    except Exception as error:  # noqa: BLE001 - the process ends here: the exit code tells
        return _explain(name, error)
    print(f"{REPORT_MARKER}{json.dumps(report)}", flush=True)
    return DONE


def _parse(given: str) -> Any:
    from lakeformat import InvalidRequestError

    try:
        text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8")
        return json.loads(text)
    except (OSError, ValueError) as reason:
        raise InvalidRequestError(f"--request is no JSON object and no file: {reason}") from None


def _explain(name: str, error: Exception) -> int:
    from lakeformat import InvalidRequestError, LakeError

    if not isinstance(error, LakeError):  # nobody foresaw it: say where it comes from
        traceback.print_exception(error)
    reason = " ".join(str(error).split())
    print(f"{name}: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)
    return INVALID_REQUEST if isinstance(error, InvalidRequestError) else FAILED

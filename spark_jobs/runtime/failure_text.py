# SPDX-License-Identifier: Apache-2.0
"""The reason why a job failed, as one line that begins with the cause.

Spark puts the cause at the end of a trace of hundreds of lines. The trace itself is printed to
standard error.
"""

from __future__ import annotations

import re

__all__ = ["failure_text"]

_OF_PYTHON = "Traceback (most recent call last):"
_OF_JAVA = re.compile(r"^(?:Caused by)?: ([\w.$]+(?::.*)?)$", re.MULTILINE)
_PACKAGES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
_DISK = re.compile(r"No space left on device|lake-spill-")
_DISK_ADVICE = (
    "; Spark and its tasks store rows on the local disk: free some space, or set TMPDIR to another "
    "directory before Spark starts"
)


def failure_text(error: BaseException) -> str:
    """Return the cause of an error in one line.

    For a Python trace, the line of code that raised the error is added in parentheses. For a Java
    trace, the first error of the trace is added. If a trace shows that the disk is full, advice is
    added.
    """
    text = str(error)
    if _OF_PYTHON not in text and "\n\tat " not in text:
        return _one_line(text)
    causes = [_PACKAGES.sub("", each) for each in _OF_JAVA.findall(text)]
    if _OF_PYTHON in text:
        message, where = _raised(text.rpartition(_OF_PYTHON)[2])
    else:
        message = causes[-1] if causes else text.partition("\n\tat ")[0]
        where = causes[0] if len(causes) > 1 else ""
    found = _one_line(message) + (f" ({_one_line(where)})" if where else "")
    return found + (_DISK_ADVICE if _DISK.search(found) else "")


def _raised(trace: str) -> tuple[str, str]:
    """Return the error at the end of a Python trace, and the line of code that raised it."""
    lines = trace.partition("\n\n")[0].partition("\n\tat ")[0].splitlines()
    places = [line.strip() for line in lines if line.startswith("  File ")]
    messages = [line for line in lines if line and not line[0].isspace()]
    return " ".join(messages), places[-1] if places else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())

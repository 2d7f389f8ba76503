# SPDX-License-Identifier: Apache-2.0
"""Runs a job by its name: ``python -m spark_jobs compact --request …``.

``python lake.zip compact --request …`` does the same from the archive of ``lake package``.
"""

from __future__ import annotations

import sys
from importlib import import_module

from spark_jobs.runtime.registry import JOB_NAMES

__all__ = ["main"]

INVALID_REQUEST = 30


def main(arguments: list[str] | None = None) -> int:
    """Run the job that the first argument names, with all further arguments; return the exit code.

    ``arguments=None`` means the arguments of this process. An unknown name gives the exit code 30.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] not in JOB_NAMES:
        known = ", ".join(JOB_NAMES)
        print(f"name a job: {known}. For its help, add --help", file=sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else INVALID_REQUEST
    code: int = import_module(f"spark_jobs.{words[0]}").main(words[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())

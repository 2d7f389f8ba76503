# SPDX-License-Identifier: Apache-2.0
"""Starts a command that does not outlive its parent: ``launch.py PARENT_PID COMMAND...``.

The parent is the process of a task, or a supervisor. It starts this file by its path, and the file
imports only the standard library. The new process then becomes the command, such as
``spark-submit``. On Linux the kernel kills the command when the parent dies for any reason (memory,
container stop, ``kill -9``). A ``preexec_fn`` is not used, because Python code between fork and
exec can block forever in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(words: list[str]) -> None:
    """Replace this process by a command; exit with code 143 if the parent has already died.

    ``words`` are the process id of the parent, and the words of the command.
    """
    parent, command = int(words[0]), words[1:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the kernel was asked to watch it
        sys.exit(143)
    try:
        os.execvp(command[0], command)
    except OSError as reason:
        sys.exit(f"cannot start {command[0]}: {reason.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])

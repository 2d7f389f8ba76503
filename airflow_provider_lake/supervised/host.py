# SPDX-License-Identifier: Apache-2.0
"""The machine of a process, and the triggerer on the same machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["this_host", "triggerer_is_here"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def this_host() -> str | None:
    """Return a name for the host, its boot and the container in which this process runs.

    Processes can find each other by their process ids if this name is equal for them. Return None
    on a system without ``/proc``: there, a later process may have the id of an ended process.
    """
    try:
        return " ".join(
            (socket.gethostname(), _BOOT.read_text().strip(), os.readlink("/proc/self/ns/pid"))
        )
    except OSError:
        return None


def triggerer_is_here() -> bool:
    """Return True if this process can see a process of ``airflow triggerer``: one on this machine,
    and in the same container.
    """
    import psutil

    return any(_is_triggerer(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))


def _is_triggerer(words: list[str] | None) -> bool:
    return any(
        word == "triggerer" and before.rpartition("/")[2] == "airflow"
        for before, word in zip(words or (), (words or ())[1:], strict=False)
    )

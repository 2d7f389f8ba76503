"""Holds a process before or after it publishes a snapshot, until it gets a signal."""

import os
import signal
import time
from pathlib import Path

from lakeformat.storage.local import LocalStorage


def hold_commits(signs, moment):
    """From now on a publication writes its process to ``signs/here`` and waits for ``signs/go``.

    If ``signs/stubborn`` exists, the process ignores requests to end while it waits.
    """
    publish = LocalStorage.create

    def create(storage, path, content):
        is_snapshot = Path(path).name.startswith("snapshot-")
        if is_snapshot and moment == "before":
            wait(Path(signs))
        won = publish(storage, path, content)
        if is_snapshot and moment == "after":
            wait(Path(signs))
        return won

    LocalStorage.create = create


def wait(signs):
    if (signs / "stubborn").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    written = signs / f"here-{os.getpid()}"
    written.write_text(str(os.getpid()))
    written.rename(signs / "here")  # whole, or not there
    while not (signs / "go").exists():
        time.sleep(0.05)

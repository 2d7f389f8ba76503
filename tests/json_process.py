"""Another implementation as a process: one request at a time, a line of JSON each way."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

__all__ = ["JsonProcess", "PeerError"]


class PeerError(Exception):
    """The error of the other process, with its own trace."""


class JsonProcess:
    """The process; it is called by ``name`` in errors and killed when a request takes too long."""

    def __init__(self, process: subprocess.Popen[str], name: str, longest_seconds: float) -> None:
        self._process = process
        self._name = name
        self._longest_seconds = longest_seconds

    def call(self, verb: str, **arguments: Any) -> Any:
        """Wait for the answer; raise what the other side raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(self._longest_seconds, self._process.kill)
        watchdog.start()
        try:
            print(json.dumps({"verb": verb, **arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
            watchdog.join()
        if not line:
            raise PeerError(f"{self._name} ended or took too long over {verb} {arguments}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{verb}: {answer['error']}\n{answer['trace']}")
        return answer["result"]

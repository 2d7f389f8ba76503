"""Describes failures of a set-up in one line: what failed, why, and what to do."""

from __future__ import annotations

import errno
import os
import re

NO_NETWORK = (
    "failed to resolve",
    "name resolution",
    "name or service not known",
    "nodename nor servname",
    "dns error",
    "failed to establish a new connection",
    "newconnectionerror",
    "network is unreachable",
    "connection refused",
    "connection timed out",
    "error sending request",
)
NO_TRUST = ("certificate verify failed", "invalid peer certificate", "sslerror")
NO_SPACE = ("no space left on device", "os error 28", "disk quota exceeded")
# In the words of pip and of uv.
WRONG_HASH = re.compile(
    r"do not match the hashes from the requirements file\..*\n\s+(\S+) from "
    r"|hash mismatch for `([^`]+)`"
)
NO_HASH = ("hashes are required in --require-hashes mode", "all requirements must have a hash")
NO_WRITE = ("read-only file system", "permission denied", "os error 30", "os error 13")


class SetupError(Exception):
    """The set-up cannot continue; the message is the line to print."""


def explain_output(doing: str, output: str, log: str) -> SetupError:
    """Return the ``SetupError`` for a failed installer, from its ``output``; ``log`` is the name of
    the file with all of it.
    """
    text = output.lower()
    if any(sign in text for sign in NO_SPACE):
        reason = "the disk is full: free about 3 GB and run the same command again"
    elif wrong := WRONG_HASH.search(text):
        reason = (
            f"{wrong[1] or wrong[2]} has another hash than in the lock file, so the file in "
            "the index, a mirror or a cache differs from the locked one: run pip cache purge (or "
            "uv cache clean), check which index is configured, and run the same command again"
        )
    elif any(sign in text for sign in NO_HASH):
        reason = "the lock file has a package without a hash: run bin/lock, which writes them"
    elif any(sign in text for sign in NO_TRUST):
        reason = (
            "the package index's certificate is not trusted here: "
            "set SSL_CERT_FILE to your certificates and run the same command again"
        )
    elif any(sign in text for sign in NO_NETWORK):
        reason = (
            "the package index cannot be reached: connect to the network "
            "(or configure pip for your mirror) and run the same command again"
        )
    elif any(sign in text for sign in NO_WRITE):
        reason = "a folder cannot be written: use a copy of the project in a folder you own"
    elif "ensurepip" in text:
        reason = "this Python has no venv module: install its venv package (python3-venv), or uv"
    else:
        reason = f"{last_error_line(output)} (the whole output is in {log})"
    return SetupError(f"{doing} failed: {reason}")


def explain_os_error(error: OSError, folder: str) -> SetupError:
    """Return the ``SetupError`` for an error of the operating system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SetupError(
            f"the disk is full at {folder}: free about 3 GB and run the same command again"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return SetupError(
            f"{folder} cannot be written: use a copy of the project in a folder you own"
        )
    where = f" at {os.fspath(error.filename)}" if error.filename else ""
    return SetupError(f"setting up in {folder} failed: {error.strerror or error}{where}")


def last_error_line(output: str) -> str:
    """Return the last line with an exception, else the last line with the word error, else the last
    line.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    named = [line for line in lines if "error" in line.lower()]
    return (raised or named or lines or ["the installer printed nothing"])[-1]

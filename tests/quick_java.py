"""A JAVA_HOME for tests: a Spark of a few seconds spends most of them on loading Java classes.

Its ``java`` compiles with the quick compiler alone, does not verify the classes of Spark, and takes
classes as an earlier Spark of this checkout has left them in pytest's cache, loaded and verified.
Everything else is the Java found.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["quick_java"]

TYPICAL = Path(__file__).parent / "spark" / "drivers" / "typical.py"
_PATIENCE_SECONDS = 300

# Java ends at a file that is named and not there; what it cannot use it goes without.
WRAPPER = """#!/bin/sh
[ -f {classes} ] && set -- -XX:SharedArchiveFile={classes} '-Xlog:cds*=off' "$@"
set -- -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "$@"
exec {java} -XX:TieredStopAtLevel=1 "$@"
"""


@pytest.fixture(scope="session")
def quick_java(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let every Spark from here on have it; nothing happens where there is no Java or no Spark."""
    found = _found_home()
    if found is None or find_spec("pyspark.core") is None:
        yield
        return
    home = tmp_path_factory.mktemp("quick") / "java"
    # A checkout that cannot be written has no cache: there it is the quick compiler alone.
    cache = getattr(pytestconfig, "cache", None)
    classes = (cache.mkdir("java-classes") if cache else home) / f"{_digest(found)}.jsa"
    _wrap(found, home, classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        # A clean clone of CI runs too few Sparks to gain what the classes cost.
        if cache and not classes.exists() and not os.environ.get("CI"):
            _leave_classes(classes)
        yield


def _found_home() -> Path | None:
    """The Java that Spark would take."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home)
    on_path = shutil.which("java")
    return Path(on_path).resolve().parents[1] if on_path else None


def _digest(home: Path) -> str:
    """Another Java or Spark has different classes."""
    import pyspark

    java = (home / "bin" / "java").resolve()
    what = f"{java} {java.stat().st_mtime_ns} {pyspark.__file__} {pyspark.__version__}"
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _wrap(found: Path, home: Path, classes: Path) -> None:
    """A home like the one found, but for its ``java``."""
    (home / "bin").mkdir(parents=True)
    for place, whole in ((found, home), (found / "bin", home / "bin")):
        for each in place.iterdir():
            if each.name not in ("bin", "java"):
                (whole / each.name).symlink_to(each)
    java = home / "bin" / "java"
    words = {"java": found / "bin" / "java", "classes": classes}
    java.write_text(WRAPPER.format_map({name: shlex.quote(str(it)) for name, it in words.items()}))
    java.chmod(0o755)


def _leave_classes(classes: Path) -> None:
    """Run a typical program once, unless another process does it already; without it, tests only
    take longer.
    """
    import pyspark

    with classes.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        draft = classes.with_suffix(".draft")
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [
                    str(submit),
                    "--master",
                    "local[1]",
                    "--conf",
                    "spark.ui.enabled=false",
                    str(TYPICAL),
                ],
                env={
                    **os.environ,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_SUBMIT_OPTS": "-XX:+BytecodeVerificationRemote "
                    f"-XX:ArchiveClassesAtExit={draft} -Xlog:cds*=off",
                },
                cwd=classes.parent,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        if draft.exists():  # not every Java can leave them
            draft.replace(classes)

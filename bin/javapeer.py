"""Builds one of the Java programs of tests/java, with the released jars from Maven.

The argument of the script names the program: ``peer`` (the default) or ``metastore``. The script
prints, as JSON, the path of ``java`` and the class path that start the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import java
import packages
from trouble import SetupError, explain_os_error

ROOT = Path(__file__).resolve().parent.parent
PEER = "peer"
UNFIT = "bin/test java needs"


def main(arguments: Sequence[str]) -> int:
    """Build a program and print the Java and class path that start it; return 2 with one line if
    that is not possible.
    """
    try:
        print(json.dumps(prepare(ROOT, os.environ, *arguments)))
    except SetupError as error:
        print(error)
        return 2
    return 0


def prepare(root: Path, environ: Mapping[str, str], program: str = PEER) -> dict[str, str]:
    """Bring the jars and classes of a program up to date; return the Java and class path that start
    it. Raise ``SetupError`` if that is not possible.
    """
    home = find_jdk(environ)
    folder = ".venv-java" if program == PEER else f".venv-java-{program}"
    lock = f"tests/java/{program}/pom.xml"
    place = packages.Environment(root, folder, lock, False, gigabytes=1)
    jars, classes = place.folder / "jars", place.folder / "classes"
    try:
        if read_stamp(place) != digest(place, home):
            with packages.setup_lock(place) as held:
                if read_stamp(place) != digest(place, home):
                    build(place, home, environ, held)
    except OSError as error:
        raise explain_os_error(error, str(root)) from None
    return {
        "java": f"{home}/bin/java",
        "classpath": os.pathsep.join([str(classes), f"{jars}/*"]),
    }


def find_jdk(environ: Mapping[str, str]) -> str:
    """Return the home of a usable Java with a compiler: that of JAVA_HOME, else that of the PATH.
    Raise ``SetupError`` if neither has one.
    """
    on_path = shutil.which("javac", path=environ.get("PATH"))
    for home in (environ.get("JAVA_HOME"), on_path and Path(os.path.realpath(on_path)).parents[1]):
        compiler = home and os.path.join(home, "bin", "javac")
        found = home and java.ask_java(os.path.join(home, "bin", "java"))
        if compiler and os.access(compiler, os.X_OK) and found and found.is_usable:
            return str(home)
    raise SetupError(
        f"{UNFIT} a JDK {java.OLDEST} to {java.NEWEST} with javac, and JAVA_HOME and the PATH "
        "hold none: install one and set JAVA_HOME to it"
    )


def build(place: packages.Environment, home: str, environ: Mapping[str, str], held: int) -> None:
    """Fetch the jars and compile the program; raise ``SetupError`` if that fails. The stamp is
    written last, so an interrupted build has none.
    """
    maven = shutil.which("mvn", path=environ.get("PATH"))
    if maven is None:
        raise SetupError(
            f"{UNFIT} Maven (mvn) to fetch the jars, and the PATH holds none: install it"
        )
    sources = (place.root / place.lock).parent
    jars, classes = place.folder / "jars", place.folder / "classes"
    packages.require_space(place)
    packages.say(f"fetching jars into {place.name}, a minute the first time")
    shutil.rmtree(place.folder, ignore_errors=True)
    classes.mkdir(parents=True)
    environ = {**environ, "JAVA_HOME": home}
    fetch = [maven, "-B", "-q", "-f", str(sources / "pom.xml"), "dependency:copy-dependencies"]
    fetch += [f"-DoutputDirectory={jars}"]
    packages.run_quietly(place, fetch, environ, held, doing="fetching jars")
    compiler = [f"{home}/bin/javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes)]
    compiler += [str(path) for path in sorted(sources.glob("*.java"))]
    packages.run_quietly(
        place, compiler, environ, held, doing=f"compiling {sources.relative_to(place.root)}"
    )
    place.stamp.write_text(digest(place, home), encoding="utf-8")


def digest(place: packages.Environment, home: str) -> str:
    """Return a digest of the sources, the jars, the compiler and the target folder of a program."""
    content = hashlib.sha256(f"{home}\n{place.folder}\n".encode())
    for path in sorted((place.root / place.lock).parent.iterdir()):
        content.update(path.read_bytes())
    return content.hexdigest()


def read_stamp(place: packages.Environment) -> str:
    """Return the digest of the last complete build; empty if there is none."""
    return place.stamp.read_text(encoding="utf-8") if place.stamp.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

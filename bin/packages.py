"""Fills a virtual environment with exactly the pinned packages, also after an interruption.

``stamp.json`` (the stamp) lists the complete parts of the environment, such as the packages. It is
written after the work, so an environment without a stamp is incomplete and is built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pip_install import split_lock
from trouble import SetupError, explain_output

SECONDS_BETWEEN_SIGNS_OF_LIFE = 30
PIP_INSTALL = Path(__file__).with_name("pip_install.py")

# Settings of the caller's shell that would install packages elsewhere, or other packages.
MISLEADING = (
    "PIP_PREFIX",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PROJECT_ENVIRONMENT",
    "UV_SYSTEM_PYTHON",
    "VIRTUAL_ENV",
)


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of the project: its folder and its packages."""

    root: Path
    name: str
    lock: str
    holds_project: bool
    gigabytes: int
    """The free disk space that a new environment needs, in GB, including temporary files of the
    installers.
    """
    instead: str = ""
    """A further lock file, whose packages replace those with the same names; empty for none."""

    @property
    def folder(self) -> Path:
        """The folder of the virtual environment."""
        return self.root / self.name

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.folder / "bin" / "python"

    @property
    def pins(self) -> str:
        """The pinned packages with their hashes, in the form of a lock file."""
        lock = (self.root / self.lock).read_text(encoding="utf-8")
        if not self.instead:
            return lock
        other = (self.root / self.instead).read_text(encoding="utf-8")
        replaced = {name_of(each) for each in split_lock(other)}
        return "".join(e for e in split_lock(lock) if name_of(e) not in replaced) + other

    @property
    def stamp(self) -> Path:
        """The file that lists the complete parts of the environment."""
        return self.folder / "stamp.json"

    @property
    def log(self) -> Path:
        """The log of the installers, outside the folder so that it survives a failure."""
        return self.root / f"{self.name}-setup.log"


def name_of(package: str) -> str:
    """Return the name of a package from its entry in a lock file."""
    return package.partition("==")[0]


def prepare(environment: Environment, environ: Mapping[str, str]) -> None:
    """Bring the environment up to date, or return at once if it is; raise ``SetupError`` if that
    fails.
    """
    if is_ready(environment):
        return
    with setup_lock(environment) as held:
        if not has_packages(environment):
            build(environment, environ, held)
        if environment.holds_project and not is_ready(environment):
            install_project(environment, environ, held)


def is_ready(environment: Environment) -> bool:
    """Return True if all packages are installed, and with ``holds_project`` also the project."""
    return has_packages(environment) and (
        not environment.holds_project
        or read_stamp(environment).get("project") == project_digest(environment)
    )


def has_packages(environment: Environment) -> bool:
    """Return True if the pinned packages are installed and the environment's Python runs."""
    stamp = read_stamp(environment)
    return "packages" in stamp and stamp["packages"] == packages_digest(environment)


def packages_digest(environment: Environment) -> str:
    """Return a digest of the pinned versions, the folder and the environment's own Python.

    The Python that runs this module does not count, so that two shells with two Pythons share one
    environment.
    """
    place = f"{ask_python(environment)}{environment.folder}\n"
    return hashlib.sha256((place + environment.pins).encode()).hexdigest()


def ask_python(environment: Environment) -> str:
    """Return the version and base prefix of the environment's Python; empty if it does not run."""
    question = "import sys; print(sys.version, sys.base_prefix, sep='\\n')"
    command = [str(environment.python), "-I", "-S", "-c", question]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return answer.stdout if answer.returncode == 0 else ""


def project_digest(environment: Environment) -> str:
    """Return a digest of the project's metadata. If it changes, only the project is installed
    again.
    """
    return hashlib.sha256((environment.root / "pyproject.toml").read_bytes()).hexdigest()


def read_stamp(environment: Environment) -> dict[str, str]:
    """Return the entries of the stamp by name; empty if the environment is missing or damaged."""
    if not environment.python.exists():
        return {}
    try:
        stamp = json.loads(environment.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def update_stamp(environment: Environment, **complete: str) -> None:
    """Add entries to the stamp, whose file is replaced in one step."""
    stamp = read_stamp(environment) | complete
    draft = environment.stamp.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    draft.replace(environment.stamp)


@contextmanager
def setup_lock(environment: Environment) -> Iterator[int]:
    """Wait until no other set-up of the environment runs, and exclude any other set-up during the
    block; yield the descriptor of the locked file.

    The installers inherit the descriptor: if this process is killed, the next set-up still waits
    for them.
    """
    lock = os.open(environment.root / f"{environment.name}.lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that sets up {environment.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def mark_in_use(environment: Environment) -> None:
    """Keep other runs from rebuilding the environment until this process ends, even if the process
    becomes another command.
    """
    handle = os.open(environment.folder / "pyvenv.cfg", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    os.set_inheritable(handle, True)


def build(environment: Environment, environ: Mapping[str, str], held: int) -> None:
    """Create a new environment; raise ``SetupError`` if that fails. After a failure or an
    interruption the incomplete environment is deleted.
    """
    remove(environment)
    require_space(environment)
    count = len(split_lock(environment.pins))
    uv = shutil.which("uv", path=environ.get("PATH"))
    about = "a minute" if uv or count < 100 else "two minutes"
    say(f"installing {count} packages into {environment.name}, about {about} the first time")
    began = time.monotonic()
    try:
        create_empty(environment, uv, environ, held)
        lock = environment.lock
        if environment.instead:
            merged = environment.folder / "lock.txt"
            merged.write_text(environment.pins, encoding="utf-8")
            lock = str(merged)
        doing = f"installing {environment.instead or environment.lock}"
        install_pinned(environment, lock, environ, held, doing=doing)
        update_stamp(environment, packages=packages_digest(environment))
    except BaseException:
        shutil.rmtree(environment.folder, ignore_errors=True)
        raise
    say(f"installed in {time.monotonic() - began:.0f} s")


def remove(environment: Environment) -> None:
    """Delete the old environment. Raise ``SetupError`` if its path is not a folder, or if another
    run uses it.
    """
    folder = environment.folder
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SetupError(f"{folder} is not a folder made by this command: move it away")
    settings = folder / "pyvenv.cfg"
    if settings.exists():
        with settings.open("rb") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SetupError(
                    f"{environment.name} must be built again, but another run is using it: run "
                    "the same command when that run has finished"
                ) from None
    if folder.exists():
        shutil.rmtree(folder)


def require_space(environment: Environment) -> None:
    """Raise ``SetupError`` if the disk has too little space, before anything is written."""
    free = shutil.disk_usage(environment.root).free / 1024**3
    if free < environment.gigabytes:
        raise SetupError(
            f"{environment.root} has {free:.1f} GB left and {environment.name} needs "
            f"{environment.gigabytes} GB: free some space and run the same command again"
        )


def create_empty(
    environment: Environment, uv: str | None, environ: Mapping[str, str], held: int
) -> None:
    """Create the virtual environment with pip and no other packages. Raise ``SetupError`` if that
    fails.
    """
    folder = str(environment.folder)
    # If the environment is activated, sys.executable is in the folder that was just removed.
    python = getattr(sys, "_base_executable", sys.executable)
    if uv:
        command = [uv, "venv", "--quiet", "--seed", "--python", python, folder]
    else:
        command = [python, "-m", "venv", folder]
    run_quietly(environment, command, environ, held, doing=f"making {environment.name}")


def install_project(environment: Environment, environ: Mapping[str, str], held: int) -> None:
    """Install the project as editable, with the build backend in the lock file. Raise
    ``SetupError`` if that fails.
    """
    what = ["--no-deps", "--no-build-isolation", "--editable", str(environment.root)]
    if not (command := uv_install(environment, environ)):
        python = str(environment.python)
        command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    run_quietly(environment, command + what, environ, held, doing="installing the project")
    update_stamp(environment, project=project_digest(environment))


def install_pinned(
    environment: Environment,
    lock: str,
    environ: Mapping[str, str],
    held: int,
    *options: str,
    doing: str,
) -> None:
    """Install the packages of a lock file; only files with the hashes of the lock file are
    accepted. ``doing`` describes the work in an error. Raise ``SetupError`` if the installation
    fails.
    """
    file = str(environment.root / lock)
    if command := uv_install(environment, environ):
        command += ["--require-hashes", *options, "-r", file]
    else:
        command = [str(environment.python), str(PIP_INSTALL), file, *options]
    run_quietly(environment, command, environ, held, doing=doing)


def uv_install(environment: Environment, environ: Mapping[str, str]) -> list[str]:
    """Return the command that installs packages with uv; empty if there is no uv."""
    uv = shutil.which("uv", path=environ.get("PATH"))
    python = str(environment.python)
    return [uv, "pip", "install", "--quiet", "--python", python, "--compile-bytecode"] if uv else []


def run_quietly(
    environment: Environment,
    command: list[str],
    environ: Mapping[str, str],
    held: int,
    *,
    doing: str,
) -> None:
    """Run an installer with its output in the log; raise ``SetupError`` with the reason in one line
    if it fails.
    """
    with environment.log.open("w+", encoding="utf-8", errors="replace") as log:
        began = time.monotonic()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=installer_environ(environ),
            pass_fds=(held,),
            process_group=0,
        ) as process:
            try:
                code = wait(process, began)
            except BaseException:
                # End the whole group: no process of it may write on or hold the lock.
                os.killpg(process.pid, signal.SIGTERM)
                raise
        log.seek(0)
        output = log.read()
    if code != 0:
        raise explain_output(doing, output, environment.log.name)
    environment.log.unlink()


def wait(process: subprocess.Popen[bytes], began: float) -> int:
    """Wait for an installer, and print a line every 30 seconds; return its exit code."""
    while True:
        try:
            return process.wait(timeout=SECONDS_BETWEEN_SIGNS_OF_LIFE)
        except subprocess.TimeoutExpired:
            say(f"still installing after {time.monotonic() - began:.0f} s")


def installer_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment without variables that change the work of pip or uv."""
    kept = {name: value for name, value in environ.items() if name not in MISLEADING}
    # uv downloads no Python and, like pip, trusts the certificates of this machine.
    ours = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "true", "PIP_NO_INPUT": "1"}
    return ours | kept


def say(text: str) -> None:
    """Print a line of progress to standard error."""
    print(f"lake: {text}", file=sys.stderr, flush=True)

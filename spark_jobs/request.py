"""What a job is asked to do: each key declared once, everything else refused by name."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from dataclasses import field as declared
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from lakeformat import CommitId, InvalidRequestError

__all__ = ["IngestRequest", "SourceFormat", "read_request"]

SourceFormat = Literal["parquet", "csv", "json"]

_Request = TypeVar("_Request")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """Append files to a table; with the same commit pair, once."""

    warehouse: str
    """Path or URI of the warehouse."""
    table: str
    """``database.table``."""
    source: str
    """Path or glob of local files."""
    format: SourceFormat | None = None
    """What the files hold; by default their ending says it. JSON means one object per line."""
    engine: Literal["python", "spark"] = "python"
    """Where rows are read and written: in this process, or in Spark tasks."""
    catalog_options: Mapping[str, str] | None = declared(default=None, repr=False)
    """Options of the catalog and its storage; no message shows their values."""
    create: bool = False
    """Whether an absent table, and its database, is made from the columns of the files."""
    commit_user: str | None = None
    """The run that commits; a repetition with the same pair publishes nothing twice."""
    commit_identifier: int | None = None
    """Which of that run's commits this is."""
    commit_first_try_millis: int | None = None
    """A moment before the first try of that commit, in epoch milliseconds: with it, a retry that
    expired snapshots would be needed for is refused, and does not publish a second time."""

    def __post_init__(self) -> None:
        if (self.commit_user is None) != (self.commit_identifier is None):
            raise _refusal("keys 'commit_user' and 'commit_identifier' only make sense together")
        if self.commit_first_try_millis is not None and self.commit_user is None:
            raise _refusal("key 'commit_first_try_millis' only makes sense with 'commit_user'")
        self.commit_id()  # a pair that is no identity is refused here, with every other value

    def commit_id(self) -> CommitId | None:
        """The identity of the commit; None for one that nobody will repeat."""
        if self.commit_user is None or self.commit_identifier is None:
            return None
        from lakeformat import CommitId

        return CommitId(
            self.commit_user,
            self.commit_identifier,
            first_try_millis=self.commit_first_try_millis,
        )


def read_request(kind: type[_Request], given: Mapping[str, Any]) -> _Request:
    """Build a request, or raise an ``InvalidRequestError`` that names everything wrong with it."""
    if not isinstance(given, Mapping):
        raise _refusal(f"a request is an object with keys and values, got {given!r}")
    problems = [*_unknown_keys(kind, given), *_missing_keys(kind, given), *_values(kind, given)]
    if problems:
        raise _refusal("; ".join(problems))
    return kind(**given)


def _unknown_keys(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            yield f"unknown key {key!r}: {meant}"


def _missing_keys(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    for field in fields(kind):
        if field.default is MISSING and field.name not in given:
            yield f"missing key {field.name!r}"


def _values(kind: type[Any], given: Mapping[str, Any]) -> Iterator[str]:
    hidden = {field.name for field in fields(kind) if not field.repr}
    for key, hint in get_type_hints(kind).items():
        if key in given and not _accepts(hint, given[key]):
            got = "what is not shown here" if key in hidden else repr(given[key])
            yield f"key {key!r} wants {_wanted(hint)}, got {got}"


def _accepts(hint: Any, value: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(_accepts(part, value) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is Mapping:
        return isinstance(value, dict) and all(
            isinstance(text, str) for pair in value.items() for text in pair
        )
    if hint is str:
        return isinstance(value, str) and bool(value.strip())
    return type(value) is hint  # exact, because True is an int


def _wanted(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_wanted(part) for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is Mapping:
        return "an object of texts"
    return {str: "a text that is not empty", bool: "true or false", int: "a whole number"}[hint]


def _refusal(reason: str) -> InvalidRequestError:
    from lakeformat import InvalidRequestError

    return InvalidRequestError(reason)

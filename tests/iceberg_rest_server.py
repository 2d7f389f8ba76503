"""A small server of Iceberg's open REST specification, for tests: on loopback, in this process.

It keeps names and the addresses of metadata files. Tests script its failures.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

__all__ = ["Refused", "RestServer", "rest_server"]

_SEPARATOR = "\x1f"
_MOVED = "/moved"


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class RestServer:
    """The state of the server; tests read and change it."""

    uri: str = ""
    warehouse: str = ""
    """The address below which new tables are."""
    databases: dict[str, dict[str, str]] = field(default_factory=dict)
    tables: dict[str, str | None] = field(default_factory=dict)
    """The address of the metadata file of each ``database.table``."""
    config: dict[str, str] = field(default_factory=dict)
    """The ``config`` of each table in answers."""
    credentials: list[dict[str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    """The accepted tokens; none: every request is let in."""
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Statuses and texts of the next answers about tables, instead of real ones."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each request."""
    warehouses: list[str | None] = field(default_factory=list)
    """The warehouses that clients named."""
    tokens_given: int = 0
    lost_answers: list[int] = field(default_factory=list)
    """Statuses of the next commits that succeed, instead of their answers."""
    failures_after_loss: list[tuple[int, str]] = field(default_factory=list)
    """The ``failures`` that follow a lost answer."""
    overrides: dict[str, str] = field(default_factory=dict)
    """The options that the service sets in its clients."""
    redirect: int = 0
    """The status that redirects each request to the path below ``/moved``; 0: none."""
    commits: int = 0
    shows_metadata: bool = False
    """True if answers about a table have its metadata, for clients that read no file themselves."""
    nested_failure: int = 0
    """The status that answers a request for the databases in a database; 0: they are listed."""
    replaces: bool = True
    """False for a service that cannot register a file in place of a table."""
    lock: Any = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """Return the content of an answer; None if it has none."""
        parts = [unquote(each) for each in path.strip("/").split("/")]
        match method, parts[1:]:
            case "GET", ["config"]:
                self.warehouses.append(query.get("warehouse"))
                return {"defaults": {}, "overrides": self.overrides}
            case "GET", ["namespaces"]:
                return self._list_databases(query.get("parent"))
            case "POST", ["namespaces"]:
                return self._create_database(".".join(body["namespace"]), body["properties"])
            case _, ["namespaces", database]:
                return self._database(method, database.replace(_SEPARATOR, "."))
            case "POST", ["tables", "rename"]:
                return self._rename(body["source"], body["destination"])
            case "POST", ["namespaces", database, "register"]:
                if self.failures:
                    raise Refused(*self.failures.pop(0))
                return self._register(database.replace(_SEPARATOR, "."), body)
            case _, ["namespaces", database, "tables", *name]:
                if self.failures:
                    raise Refused(*self.failures.pop(0))
                return self._table(method, database.replace(_SEPARATOR, "."), name, body)
        raise Refused(404, f"no such path: {method} {path}")

    def _list_databases(self, parent: str | None) -> Any:
        if parent is not None and self.nested_failure:
            raise Refused(self.nested_failure, "a namespace has one part")
        return {"namespaces": [each.split(".") for each in self.databases]}

    def _create_database(self, name: str, properties: dict[str, str]) -> Any:
        if name in self.databases:
            raise Refused(409, "namespace exists")
        self.databases[name] = properties
        return {"namespace": name.split("."), "properties": properties}

    def _database(self, method: str, name: str) -> Any:
        if name not in self.databases:
            raise Refused(404, "namespace does not exist")
        if method == "DELETE":
            if any(each.rpartition(".")[0] == name for each in self.tables):
                raise Refused(409, "namespace is not empty")
            if any(each.rpartition(".")[0] == name for each in self.databases):
                raise Refused(409, "namespace has child namespaces")
            del self.databases[name]
            return None
        return {"namespace": name.split("."), "properties": self.databases[name]}

    def _table(self, method: str, database: str, name: list[str], body: Any) -> Any:
        if database not in self.databases:
            raise Refused(404, "namespace does not exist")
        if not name and method == "POST":
            return self._create_table(database, body)
        if not name:
            found = [each.rpartition(".") for each in self.tables]
            return {
                "identifiers": [
                    {"namespace": database.split("."), "name": table}
                    for place, _, table in found
                    if place == database
                ]
            }
        full = f"{database}.{name[0]}"
        if full not in self.tables:
            raise Refused(404, f"table {full} does not exist")
        if method == "POST":
            return self._commit(full, body)
        if method == "DELETE":
            del self.tables[full]
            return None
        return {
            "metadata-location": self.tables[full],
            "metadata": self._content(full) if self.shows_metadata else {"format-version": 99},
            "config": self.config,
            "storage-credentials": self.credentials,
        }

    def _content(self, name: str) -> Any:
        return json.loads(Path(urlsplit(self.tables[name]).path).read_text())

    def _register(self, database: str, body: Any) -> Any:
        if database not in self.databases:
            raise Refused(404, "namespace does not exist")
        name = f"{database}.{body['name']}"
        if name in self.tables and not (self.replaces and body.get("overwrite")):
            raise Refused(409, "table exists")
        self.tables[name] = body["metadata-location"]
        return {"metadata-location": self.tables[name], "metadata": self._content(name)}

    def _create_table(self, database: str, body: Any) -> Any:
        name = f"{database}.{body['name']}"
        if name in self.tables:
            raise Refused(409, "table exists")
        location = f"{self.warehouse}/{database}/{body['name']}"
        self.tables[name] = f"{location}/metadata/00000-rest.metadata.json"
        version = int(body["properties"].pop("format-version"))
        metadata = {
            "format-version": version,
            "table-uuid": name,
            "location": location,
            "last-sequence-number": 0,
            "last-updated-ms": 1,
            "last-column-id": 99,
            "schemas": [body["schema"]],
            "current-schema-id": 0,
            "partition-specs": [body["partition-spec"]],
            "default-spec-id": body["partition-spec"]["spec-id"],
            "last-partition-id": 1099,
            "sort-orders": [body["write-order"]],
            "default-sort-order-id": body["write-order"]["order-id"],
            "properties": body["properties"],
            **({"next-row-id": 0} if version > 2 else {}),
            "current-snapshot-id": None,
            "refs": {},
            "snapshots": [],
            "metadata-log": [],
        }
        path = Path(urlsplit(self.tables[name]).path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(metadata))
        return {"metadata-location": self.tables[name], "metadata": metadata, "config": {}}

    def _rename(self, source: Any, destination: Any) -> None:
        old, new = (".".join((*each["namespace"], each["name"])) for each in (source, destination))
        if old not in self.tables:
            raise Refused(404, "table does not exist")
        if new in self.tables:
            raise Refused(409, "table exists")
        self.tables[new] = self.tables.pop(old)

    def _commit(self, name: str, body: Any) -> Any:
        with self.lock:
            address = self.tables[name]
            metadata = json.loads(Path(urlsplit(address).path).read_text())
            require(metadata, body["requirements"])
            for update in body["updates"]:
                apply_update(metadata, update)
            metadata["metadata-log"].append(
                {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": address}
            )
            metadata["last-updated-ms"] += 1
            self.commits += 1
            written = f"{metadata['location']}/metadata/{self.commits:05d}-{uuid4()}.metadata.json"
            Path(urlsplit(written).path).write_text(json.dumps(metadata))
            self.tables[name] = written
        if self.lost_answers:
            self.failures += self.failures_after_loss
            raise Refused(self.lost_answers.pop(0), "the answer is lost")
        return {"metadata-location": written, "metadata": metadata}


def require(metadata: dict[str, Any], requirements: list[dict[str, Any]]) -> None:
    """Refuse a commit whose requirements the metadata does not meet."""
    found = {
        "assert-table-uuid": ("uuid", "table-uuid"),
        "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id"),
        "assert-current-schema-id": ("current-schema-id", "current-schema-id"),
        "assert-last-assigned-partition-id": ("last-assigned-partition-id", "last-partition-id"),
        "assert-default-spec-id": ("default-spec-id", "default-spec-id"),
        "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id"),
    }
    for each in requirements:
        if each["type"] == "assert-ref-snapshot-id":
            there = metadata["refs"].get(each["ref"], {}).get("snapshot-id")
            wanted = each["snapshot-id"]
        else:
            key, member = found[each["type"]]
            there, wanted = metadata[member], each[key]
        if there != wanted:
            raise Refused(409, f"{each['type']}: {there} is not {wanted}")


def apply_update(metadata: dict[str, Any], update: dict[str, Any]) -> None:
    """Apply one update of a commit, as the specification describes it."""
    match update["action"]:
        case "add-snapshot":
            snapshot = update["snapshot"]
            if snapshot["sequence-number"] <= metadata["last-sequence-number"]:
                raise Refused(400, "the sequence number is not higher than the last one")
            metadata["snapshots"].append(snapshot)
            metadata["last-sequence-number"] = snapshot["sequence-number"]
            metadata["last-updated-ms"] = snapshot["timestamp-ms"]
            if "next-row-id" in metadata:
                metadata["next-row-id"] += snapshot["added-rows"]
        case "set-snapshot-ref":
            set_reference(metadata, update)
        case "remove-snapshot-ref":
            del metadata["refs"][update["ref-name"]]
        case "remove-snapshots":
            remove_snapshots(metadata, update["snapshot-ids"])
        case "add-schema":
            metadata["schemas"].append(update["schema"])
            metadata["last-column-id"] = update["last-column-id"]
        case "set-current-schema":
            metadata["current-schema-id"] = update["schema-id"]
        case "set-properties":
            metadata["properties"] |= update["updates"]
        case "remove-properties":
            for key in update["removals"]:
                metadata["properties"].pop(key, None)
        case "set-statistics" | "set-partition-statistics" as action:
            listed = action.removeprefix("set-")
            remove_statistics(metadata, listed, [update[listed]["snapshot-id"]])
            metadata[listed].append(update[listed])
        case "remove-statistics" | "remove-partition-statistics" as action:
            listed = action.removeprefix("remove-")
            remove_statistics(metadata, listed, [update["snapshot-id"]])
        case action:
            raise Refused(400, f"this server does not know {action}")


def set_reference(metadata: dict[str, Any], update: dict[str, Any]) -> None:
    """Create or move a branch or a tag; a move of ``main`` is added to the snapshot log."""
    snapshot_id = update["snapshot-id"]
    if snapshot_id not in {each["snapshot-id"] for each in metadata["snapshots"]}:
        raise Refused(400, f"there is no snapshot {snapshot_id}")
    kept = {k: v for k, v in update.items() if k not in ("action", "ref-name")}
    metadata["refs"][update["ref-name"]] = kept
    if update["ref-name"] == "main":
        metadata["current-snapshot-id"] = snapshot_id
        entry = {"timestamp-ms": metadata["last-updated-ms"], "snapshot-id": snapshot_id}
        metadata.setdefault("snapshot-log", []).append(entry)


def remove_snapshots(metadata: dict[str, Any], removed: list[int]) -> None:
    """Remove snapshots with their statistics, and the part of the snapshot log up to them."""
    named = {each["snapshot-id"] for each in metadata["refs"].values()}
    if named & {*removed}:
        raise Refused(400, "a branch or a tag names a removed snapshot")
    kept = [each for each in metadata["snapshots"] if each["snapshot-id"] not in removed]
    metadata["snapshots"] = kept
    for listed in ("statistics", "partition-statistics"):
        remove_statistics(metadata, listed, removed)
    log = metadata.get("snapshot-log", [])
    gaps = [number for number, each in enumerate(log, 1) if each["snapshot-id"] in removed]
    metadata["snapshot-log"] = log[max(gaps, default=0) :]


def remove_statistics(metadata: dict[str, Any], listed: str, snapshot_ids: list[int]) -> None:
    """Remove the statistics files of some snapshots; snapshots without one are no error."""
    files = metadata.get(listed, [])
    metadata[listed] = [each for each in files if each["snapshot-id"] not in snapshot_ids]


@contextmanager
def rest_server() -> Iterator[RestServer]:
    """Run a server on a free port until the end of the block."""
    state = RestServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.uri = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(state: RestServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        do_POST = do_DELETE = do_HEAD = do_GET

        def _answer(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(url.query).items()}
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if state.redirect and not url.path.startswith(_MOVED):
                self._redirect()
                return
            url = url._replace(path=url.path.removeprefix(_MOVED))
            state.requests.append(f"{self.command} {url.path}")
            try:
                if url.path.endswith("/oauth/tokens"):
                    state.tokens_given += 1
                    token = f"token-{state.tokens_given}"
                    state.tokens = {token}
                    answer = {"access_token": token, "token_type": "bearer", "expires_in": 3600}
                else:
                    self._check_token()
                    body = json.loads(content) if content else None
                    answer = state.answer(self.command, url.path, query, body)
            except Refused as error:
                self._send(error.status, {"error": _error(error)})
            else:
                self._send(204 if answer is None else 200, answer)

        def _redirect(self) -> None:
            self.send_response(state.redirect)
            self.send_header("Location", f"{state.uri}{_MOVED}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _check_token(self) -> None:
            sent = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if state.tokens and sent not in state.tokens:
                raise Refused(401, f"the token {sent!r} is not accepted")

        def _send(self, status: int, answer: Any) -> None:
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _error(error: Refused) -> dict[str, Any]:
    return {"message": str(error), "type": "TestException", "code": error.status}

"""One bucket that misbehaves on demand, over HTTP, for the client the library really uses."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class PutFault(Enum):
    """The fault at one PUT."""

    LOST_ANSWER = "it is done, and the connection breaks before the answer"
    REFUSED_AFTER_SUCCESS = "it is done, and 412 is answered, as after a proxy's own repeat"
    REFUSED = "412, nothing is done"
    CONFLICT = "409, nothing is done"
    BUSY = "503, nothing is done"
    BUSY_AFTER_SUCCESS = "503, although it is done"
    SILENCE = "nothing is done and nothing is answered for longer than the client waits"
    FORBIDDEN = "403, with the whole request in the message"
    NO_SUCH_CALL = "501"


_STATUS = {
    PutFault.CONFLICT: 409,
    PutFault.BUSY: 503,
    PutFault.BUSY_AFTER_SUCCESS: 503,
    PutFault.REFUSED_AFTER_SUCCESS: 412,
    PutFault.REFUSED: 412,
    PutFault.FORBIDDEN: 403,
    PutFault.NO_SUCH_CALL: 501,
}
_DONE = {PutFault.LOST_ANSWER, PutFault.REFUSED_AFTER_SUCCESS, PutFault.BUSY_AFTER_SUCCESS}


class FaultyBucket:
    """The objects, the requests so far, and the faults that the next PUTs meet."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.put_faults: list[PutFault] = []
        self.faulty_names = ""
        """Faults meet only PUTs of files whose names start so."""
        self.honours_conditions = True
        self.lies_about_conditions = False
        """Answers 412 to the second create, and replaces the object."""
        self.delete_status = 204
        self.etag_of_get: str | None = '"x"'
        """The answer to HEAD always has the ETag "x"."""
        self.uploads: dict[str, dict[int, bytes]] = {}
        """The parts of uploads that are not completed, by their keys."""
        self.completions: list[bool] = []
        """The next completions of uploads lose their answers: True if the upload is completed,
        False if it is aborted.
        """
        self.released = threading.Event()
        self.endpoint = ""

    def puts(self, ending: str = "") -> int:
        """Count the PUTs of names with this ending."""
        return sum(verb == "PUT" and key.endswith(ending) for verb, key, _ in self.requests)

    def put(self, key: str, body: bytes, headers: dict[str, str]) -> int | None:
        """The status to answer, or None to break the connection."""
        is_met = self.put_faults and key.rpartition("/")[2].startswith(self.faulty_names)
        fault = self.put_faults.pop(0) if is_met else None
        if fault is PutFault.SILENCE:
            self.released.wait(30)
            return None
        is_conditional = "if-none-match" in headers or "x-goog-if-generation-match" in headers
        is_refused = is_conditional and key in self.objects
        if is_refused and self.lies_about_conditions:
            self.objects[key] = body
        if is_refused and self.honours_conditions:
            return 412
        if fault is None or fault in _DONE:
            self.objects[key] = body
        return 200 if fault is None else _STATUS.get(fault)


@contextmanager
def faulty_bucket() -> Iterator[FaultyBucket]:
    """A bucket named ``lake`` on a free port of loopback."""
    bucket = FaultyBucket()

    class Handler(_Handler):
        served = bucket

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
        try:
            yield bucket
        finally:
            bucket.released.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: FaultyBucket

    def do_PUT(self) -> None:
        key, body = self._request()
        query = parse_qs(urlsplit(self.path).query)
        if "partNumber" in query:
            self.served.uploads[key][int(query["partNumber"][0])] = body
            self._answer(200, b"")
            return
        status = self.served.put(key, body, self._lower_headers())
        if status is None:
            self.close_connection = True
        else:
            secret = f"<Message>{self.headers}</Message>" if status == 403 else ""
            self._answer(status, f"<Error><Code>Fault</Code>{secret}</Error>".encode())

    def do_GET(self) -> None:
        key, _ = self._request()
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._answer(200, self._listing(query.get("prefix", [""])[0], "delimiter" in query))
            return
        found = self.served.objects.get(key)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found is not None and asked is not None:
            start, end = int(asked[1]), min(int(asked[2]) + 1, len(found))
            self._answer(206, found[start:end], f"bytes {start}-{end - 1}/{len(found)}")
        else:
            self._answer(404 if found is None else 200, found or b"")

    do_HEAD = do_GET

    def _listing(self, prefix: str, is_flat: bool) -> bytes:
        keys = sorted(key for key in self.served.objects if key.startswith(prefix))
        below = {key: key.removeprefix(prefix).partition("/") for key in keys}
        folders = {prefix + name for name, slash, _ in below.values() if slash and is_flat}
        files = [key for key in keys if not (is_flat and below[key][1])]
        return (
            "<ListBucketResult><IsTruncated>false</IsTruncated>"
            + "".join(
                f"<Contents><Key>{key}</Key><LastModified>2026-11-20T14:06:28.000Z</LastModified>"
                f'<ETag>"x"</ETag><Size>{len(self.served.objects[key])}</Size></Contents>'
                for key in files
            )
            + "".join(
                f"<CommonPrefixes><Prefix>{folder}/</Prefix></CommonPrefixes>"
                for folder in sorted(folders)
            )
            + "</ListBucketResult>"
        ).encode()

    def do_DELETE(self) -> None:
        key, _ = self._request()
        if "uploadId" in parse_qs(urlsplit(self.path).query):
            self.served.uploads.pop(key, None)
        else:
            self.served.objects.pop(key, None)
        self._answer(self.served.delete_status, b"")

    def do_POST(self) -> None:
        """S3's requests to begin and complete an upload, and to delete several objects."""
        key, body = self._request()
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "uploads" in query:
            self.served.uploads[key] = {}
            self._answer(
                200,
                f"<InitiateMultipartUploadResult><Bucket>lake</Bucket><Key>{key}</Key>"
                f"<UploadId>{key}</UploadId></InitiateMultipartUploadResult>".encode(),
            )
            return
        if "uploadId" in query:
            self._complete(key)
            return
        keys = re.findall("<Key>([^<]*)</Key>", body.decode())
        for key in keys:
            self.served.objects.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _complete(self, key: str) -> None:
        parts = self.served.uploads.pop(key, None)
        if parts is None:
            self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
            return
        is_lost = bool(self.served.completions)
        if not is_lost or self.served.completions.pop(0):
            self.served.objects[key] = b"".join(parts[number] for number in sorted(parts))
        if is_lost:
            self.close_connection = True
        else:
            found = b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
            self._answer(200, found)

    def log_message(self, *arguments: object) -> None:
        """Not on the terminal of the tests."""

    def _request(self) -> tuple[str, bytes]:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = unquote(urlsplit(self.path).path).removeprefix("/lake").strip("/")
        self.served.requests.append((self.command, key, self._lower_headers()))
        return key, body

    def _lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _answer(self, status: int, body: bytes, content_range: str = "") -> None:
        self.send_response(status)
        if content_range:
            self.send_header("Content-Range", content_range)
        etag = self.served.etag_of_get if self.command == "GET" else '"x"'
        if etag is not None:
            self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Fri, 20 Nov 2026 14:06:28 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

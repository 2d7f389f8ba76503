"""S3 and Glue on loopback, for the time of one test session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ACCESS_KEY, SECRET_KEY = "lake-test-key", "lake-test-secret"

# It ends with its standard input, so that no killed test run leaves a server behind.
# moto takes no care of its threads: of two conditional writes of one name both win now and then (30
# of 1,500 names with threads that take turns often), and a listing fails when a name goes.
# S3 has no such gaps, so requests are answered one after the other.
# moto also changes a table of Glue whatever version the request names; Glue refuses another one.
_SERVER = """
import logging, sys, threading
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
one_at_a_time = threading.RLock()
def alone(answer):
    def answer_alone(*request):
        with one_at_a_time:
            return answer(*request)
    return answer_alone
S3Response.bucket_response = alone(S3Response.bucket_response)
S3Response.key_response = alone(S3Response.key_response)
change_table = GlueResponse.update_table
def change_this_version(self):
    given, named = self.parameters.get("VersionId"), self.parameters["TableInput"]["Name"]
    with one_at_a_time:
        table = self.glue_backend.get_table(self.parameters["DatabaseName"], named)
        if given not in (None, table.as_dict()["VersionId"]):
            raise GlueClientError("ConcurrentModificationException", f"{named} has changed")
        return change_table(self)
GlueResponse.update_table = change_this_version
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
print(f"http://{host}:{port}", flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def running_s3_server() -> Iterator[str]:
    """The address of a server that has just started."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        assert endpoint.startswith("http://127.0.0.1:"), "the S3 server did not start"
        try:
            yield endpoint
        finally:
            process.kill()


def glue_options_for(endpoint: str) -> dict[str, str]:
    """The options of a catalog in Glue on the server."""
    return {
        "glue.region": "us-east-1",
        "glue.endpoint": endpoint,
        "glue.access-key-id": ACCESS_KEY,
        "glue.secret-access-key": SECRET_KEY,
    }


def options_for(endpoint: str) -> dict[str, str]:
    """The options of a catalog on the server."""
    return {"s3.endpoint": endpoint, "s3.access-key": ACCESS_KEY, "s3.secret-key": SECRET_KEY}

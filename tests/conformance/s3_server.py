"""An S3 server on loopback, for the time of one test session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ACCESS_KEY, SECRET_KEY = "lake-test-key", "lake-test-secret"

# It ends with its standard input, so that no killed test run leaves a server behind.
# moto looks whether a name is taken and stores in two steps: of two conditional writes at once both
# would win now and then (30 of 1,500 names with threads that take turns often). S3 has no such gap.
_SERVER = """
import logging, sys, threading
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
one_at_a_time, put_object = threading.Lock(), S3Response.put_object
def put_alone(response):
    with one_at_a_time:
        return put_object(response)
S3Response.put_object = put_alone
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


def options_for(endpoint: str) -> dict[str, str]:
    """What a catalog on the server is opened with."""
    return {"s3.endpoint": endpoint, "s3.access-key": ACCESS_KEY, "s3.secret-key": SECRET_KEY}

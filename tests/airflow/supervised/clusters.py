"""The REST APIs of YARN and Kubernetes on the loopback, with the answers that their pages show."""

import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import requests

APPLICATION = "application_1476912658570_0002"


class Cluster:
    """Answers with one state after the other, then always with the last one."""

    def __init__(self, states):
        self.states = list(states)
        self.killed = False
        self.address = ""

    def next_state(self):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def yarn_application(state, final, diagnostics):
    """The member ``app`` of Hadoop's "Cluster Application API"."""
    return {
        "id": APPLICATION,
        "user": "user2",
        "name": "word count",
        "queue": "default",
        "state": state,
        "finalStatus": final,
        "progress": 100,
        "trackingUI": "History",
        "trackingUrl": f"http://host.domain.com:8088/cluster/app/{APPLICATION}",
        "diagnostics": diagnostics,
        "clusterId": 1476912658570,
        "applicationType": "SPARK",
        "applicationTags": "",
        "priority": -1,
        "startedTime": 1476913457320,
        "finishedTime": 1476913761898,
        "elapsedTime": 304578,
        "amHostHttpAddress": "host.domain.com:8042",
    }


def pod(phase, exit_code=None, reason=None):
    """A pod as "Kubernetes API: Pod v1 core" describes it."""
    terminated = {"exitCode": exit_code, "reason": reason, "startedAt": None, "finishedAt": None}
    state = {"running": {}} if exit_code is None else {"terminated": terminated}
    container = {"name": "spark-kubernetes-driver", "ready": False, "state": state}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "compact-8f2-driver", "namespace": "jobs"},
        "status": {"phase": phase, "containerStatuses": [container]},
    }


NO_POD = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": 'pods "compact-8f2-driver" not found',
    "reason": "NotFound",
    "code": 404,
}


@contextmanager
def yarn(*states):
    """A resource manager; each state is (state, final status, diagnostics), or an HTTP code."""
    cluster = Cluster(states)

    def answer(method, path, _):
        assert path.startswith(f"/ws/v1/cluster/apps/{APPLICATION}"), path
        if method == "PUT":
            cluster.killed = True
            cluster.states = [("KILLED", "KILLED", "Application killed by user.")]
            return 202, {"state": "RUNNING"}
        state = cluster.next_state()
        if isinstance(state, int):
            return state, {"RemoteException": {"exception": "StandbyException"}}
        return 200, {"app": yarn_application(*state)}

    with _serving(cluster, answer):
        yield cluster


@contextmanager
def kubernetes(*states):
    """An API server; each state is a pod, a ``Status`` or an HTTP code."""
    cluster = Cluster(states)

    def answer(method, path, _):
        assert path == "/api/v1/namespaces/jobs/pods/compact-8f2-driver", path
        if method == "DELETE":
            cluster.killed = True
            cluster.states = [NO_POD]
            return 200, pod("Running")
        state = cluster.next_state()
        if isinstance(state, int):
            return state, {"kind": "Status", "status": "Failure", "code": state}
        return state.get("code", 200), state

    with _serving(cluster, answer):
        yield cluster


class KubernetesClient:
    """The two calls of the official client that are used, over the same REST API."""

    def __init__(self, address):
        self._address = address

    def read_namespaced_pod(self, name, namespace, _request_timeout):
        return self._ask("GET", name, namespace, _request_timeout)

    def delete_namespaced_pod(self, name, namespace, _request_timeout):
        return self._ask("DELETE", name, namespace, _request_timeout)

    def _ask(self, method, name, namespace, seconds):
        url = f"{self._address}/api/v1/namespaces/{namespace}/pods/{name}"
        answer = requests.request(method, url, timeout=seconds)
        if answer.status_code != 200:
            error = RuntimeError(f"({answer.status_code}) Reason: {answer.reason}")
            error.status = answer.status_code  # as in ApiException
            raise error
        return json.loads(answer.text, object_hook=_with_attributes)


def _with_attributes(found):
    named = {re.sub("([A-Z])", r"_\1", key).lower(): value for key, value in found.items()}
    return SimpleNamespace(**{"running": None, "terminated": None, **named})


@contextmanager
def _serving(cluster, answer):
    class Handler(BaseHTTPRequestHandler):
        def _reply(self):
            length = int(self.headers.get("Content-Length") or 0)
            code, body = answer(self.command, self.path, self.rfile.read(length))
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_GET = do_PUT = do_DELETE = _reply

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    cluster.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

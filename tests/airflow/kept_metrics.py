"""A backend of metrics that tests can read."""

from contextlib import nullcontext
from types import SimpleNamespace

from airflow_provider_lake.compat import metrics_sender
from tests.airflow.versions import AIRFLOW


class Nowhere:
    """The backend of a process that sends no metrics."""

    def __getattr__(self, name):
        return lambda *given, **named: None

    def timer(self, *given, **named):
        return nullcontext(SimpleNamespace(duration=0.0))


class Kept(list):
    """A backend that keeps every metric it receives."""

    def incr(self, stat, count=1, rate=1, *, tags=None):
        self.append(("incr", stat, count, tags))

    def gauge(self, stat, value, rate=1, delta=False, *, tags=None):
        self.append(("gauge", stat, value, tags))

    def timing(self, stat, dt, *, tags=None):
        self.append(("timing", stat, dt, tags))

    def numbers(self):
        """By name, of those with tags; how long it took is never the same."""
        tagged = {name: value for _, name, value, tags in self if tags}
        tagged.pop("lake.duration", None)
        return {name.removeprefix("lake."): value for name, value in tagged.items()}


def backend(kept):
    """Send the metrics of this process to ``kept``, or nowhere if it is None."""
    backend = Nowhere() if kept is None else kept
    stats = metrics_sender()
    if AIRFLOW.release >= (3, 3):
        stats.initialize(factory=lambda: backend, export_legacy_names=True)
    else:
        stats.factory, stats.instance = staticmethod(lambda: backend), None

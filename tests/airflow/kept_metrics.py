"""A backend of metrics that tests can read."""

from airflow.sdk.observability import stats


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
    stats.initialize(factory=lambda: kept, export_legacy_names=True)
